"""`manage.py runworker`: start a worker, or several.

Channels has a command of the same name, which takes channel names; called like that, this one hands over to it, so
that both work whichever app comes first.
"""

import gc
import signal
import sys
from argparse import SUPPRESS, ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DEFAULT_DB_ALIAS, DatabaseError, connections
from django.db.migrations.executor import MigrationExecutor

from jobs.conf import settings
from jobs.errors import DilammeError
from jobs.limits import NAME_RULE, valid_name
from workers.supervisor import Supervisor, end_with_parent
from workers.worker import Plan, Worker


class Command(BaseCommand):
    """Parse, check that the tables are there, and work."""

    requires_system_checks = ("dilamme",)  # the others import all URLs and their schemas, which a worker never needs
    help = "Run jobs. One signal (SIGTERM, Ctrl-C) stops it in order, a second one at once."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("channel", nargs="*", help="Channels' own use of this command: names of channels.")
        parser.add_argument("--queues", help="Comma-separated names of the queues to serve; all if left out.")
        parser.add_argument("--concurrency", type=int, help="Handlers running at once in one process.")
        parser.add_argument("--processes", type=int, default=1, help="Worker processes to run and keep running.")
        parser.add_argument("--grace", type=float, help="Seconds to let running handlers finish when stopping.")
        parser.add_argument("--drain", action="store_true", help="End as soon as nothing is due any more.")
        parser.add_argument("--layer", default="default", help="Channels' own use of this command: its layer.")
        parser.add_argument("--supervisor", type=int, help=SUPPRESS)  # set by --processes: the id of its process

    def handle(self, *args: Any, **options: Any) -> None:
        """Run until stopped, and exit with the worker's code."""
        if options["channel"]:
            self._hand_over_to_channels(*args, **options)
            return
        try:
            plan = _plan(options)
        except DilammeError as error:
            raise CommandError(str(error)) from None
        if options["processes"] < 1:
            raise CommandError(f"--processes is {options['processes']}; use 1 or more.")
        if options["processes"] > 1:
            sys.exit(Supervisor(options["processes"]).run())
        self._refuse_unmigrated()
        worker = Worker(plan)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: worker.stop())
        if options["supervisor"]:
            end_with_parent(options["supervisor"], worker.stop)
        self.stderr.write(
            f"Worker {worker.worker_id} serves {', '.join(plan.queues or ['all queues'])}; Ctrl-C stops it."
        )
        # What is imported stays. Unless the collector is told, it walks all of it again and again as jobs come and go.
        gc.collect()
        gc.freeze()
        sys.exit(worker.run())

    def _refuse_unmigrated(self) -> None:
        """Say what to do when the tables are not those of this version; an absent database is waited for instead."""
        try:
            executor = MigrationExecutor(connections[settings.DATABASE])
            missing = executor.migration_plan([n for n in executor.loader.graph.leaf_nodes() if n[0] == "dilamme"])
        except DatabaseError:
            return
        finally:
            connections[settings.DATABASE].close()
        if missing:
            alias = "" if settings.DATABASE == DEFAULT_DB_ALIAS else f" --database {settings.DATABASE}"
            raise CommandError(f"Dilamme's tables are missing or out of date: run `manage.py migrate{alias}` first.")

    def _hand_over_to_channels(self, *args: Any, **options: Any) -> None:
        try:
            from channels.management.commands.runworker import Command as Channels  # noqa: PLC0415  only if asked for
        except ImportError:
            names = " ".join(options["channel"])
            raise CommandError(f"Unexpected arguments: {names}. To serve these queues use --queues.") from None
        Channels().handle(*args, channels=options.pop("channel"), **options)


def _plan(options: dict[str, Any]) -> Plan:
    queues = None
    if options["queues"] is not None:
        queues = [name.strip() for name in options["queues"].split(",")]
        for name in queues:
            if not valid_name(name):
                raise CommandError(f"--queues contains {name!r}; {NAME_RULE}")
    concurrency = settings.CONCURRENCY if options["concurrency"] is None else options["concurrency"]
    grace = settings.GRACE if options["grace"] is None else options["grace"]
    if concurrency < 1:
        raise CommandError(f"--concurrency is {concurrency}; use 1 or more.")
    if not grace >= 0:
        raise CommandError(f"--grace is {grace}; use 0 or more seconds.")
    return Plan(queues=queues, concurrency=concurrency, grace=grace, drain=options["drain"])
