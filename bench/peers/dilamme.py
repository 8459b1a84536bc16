"""Dilamme, through its public API and its own command; every setting at its default."""

import os
from collections.abc import Iterable, Sequence
from datetime import datetime

import django
from django.core.management import call_command

from bench.peers.adapter import Counting, module

os.environ["DJANGO_SETTINGS_MODULE"] = "bench.peers.dilamme_host.settings"  # workers inherit it
django.setup()

from bench.peers.dilamme_host.tasks import record  # noqa: E402  needs Django set up


class Dilamme(Counting):
    """The adapter."""

    finished_sql = "select count(*) from dilamme_job where status = 'completed'"
    waiting_sql = "select count(*) from dilamme_job where status <> 'completed'"

    def setup(self) -> None:
        """Make the tables."""
        call_command("migrate", verbosity=0)

    def enqueue_each(self, numbers: Iterable[int]) -> None:
        """Enqueue one by one; outside of a transaction each call is one."""
        for number in numbers:
            record.enqueue(number)

    def enqueue_bulk(self, numbers: Sequence[int]) -> None:
        """Enqueue all in one statement."""
        record.enqueue_many([{"number": number} for number in numbers])

    def enqueue_at(self, number: int, due: datetime) -> None:
        """Enqueue for a time."""
        record.using(run_at=due).enqueue(number)

    def workers(self, processes: int) -> list[list[str]]:
        """Return the command of each process."""
        return [module("django", "runworker")] * processes


ADAPTER = Dilamme
