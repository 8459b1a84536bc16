"""django-tasks-db: its own worker command, which runs one task at a time and has no other way to run more."""

from bench.peers.adapter import module
from bench.peers.django_host.base import DjangoAdapter


class DjangoTasksDb(DjangoAdapter):
    """The adapter."""

    backend = "django_tasks_db"
    finished_sql = "select count(*) from django_tasks_database_dbtaskresult where status = 'SUCCESSFUL'"
    waiting_sql = "select count(*) from django_tasks_database_dbtaskresult where status <> 'SUCCESSFUL'"

    def workers(self, processes: int) -> list[list[str]]:
        """Return the command of each process; an idle one looks ten times a second instead of once."""
        options = ("--interval=0.1", "--no-startup-delay", "--verbosity=0")
        return [module("django", "db_worker", *options)] * processes


ADAPTER = DjangoTasksDb
