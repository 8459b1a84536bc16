"""dj-queue: its own supervisor with its worker processes and dispatcher, and LISTEN/NOTIFY."""

import os
from collections.abc import Sequence

from bench.peers.adapter import module
from bench.peers.django_host.base import DjangoAdapter


class DjQueue(DjangoAdapter):
    """The adapter."""

    backend = "dj_queue"
    finished_sql = "select count(*) from dj_queue_jobs where finished_at is not null"
    waiting_sql = "select count(*) from dj_queue_jobs where finished_at is null"

    def enqueue_bulk(self, numbers: Sequence[int]) -> None:
        """Enqueue all by one call."""
        self.task.get_backend().enqueue_all([(self.task, [number], {}) for number in numbers])

    def workers(self, processes: int) -> list[list[str]]:
        """Return the command of one supervisor for all processes."""
        os.environ["BENCH_PROCESSES"] = str(processes)
        return [module("django", "dj_queue")]


ADAPTER = DjQueue
