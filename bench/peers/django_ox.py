"""django-ox: its own worker command with threads, and its call for many."""

from collections.abc import Sequence

from bench.peers.adapter import module
from bench.peers.django_host.base import DjangoAdapter

_THREADS = 4  # as in its own benchmark; with ten it was no faster


class DjangoOx(DjangoAdapter):
    """The adapter."""

    backend = "django_ox"
    finished_sql = "select count(*) from django_ox_oxtask where status = 'SUCCESSFUL'"
    waiting_sql = "select count(*) from django_ox_oxtask where status <> 'SUCCESSFUL'"

    def enqueue_bulk(self, numbers: Sequence[int]) -> None:
        """Enqueue all in one transaction."""
        from django_ox.bulk import enqueue_many  # noqa: PLC0415  needs Django set up

        enqueue_many(self.task, [((number,), {}) for number in numbers])

    def workers(self, processes: int) -> list[list[str]]:
        """Return the command of each process; an idle one looks ten times a second instead of once."""
        options = (f"--concurrency={_THREADS}", "--interval=0.1", "--verbosity=0")
        return [module("django", "ox_worker", *options)] * processes


ADAPTER = DjangoOx
