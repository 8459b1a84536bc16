"""What the adapters of the task backends for Django share: they have the same interface, Django's."""

import os
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import django
from django.core.management import call_command
from django.utils.module_loading import import_string

from bench.peers.adapter import Counting


class DjangoAdapter(Counting):
    """An adapter for the backend that is an app with this name."""

    backend: str

    def __init__(self) -> None:
        super().__init__()
        os.environ["BENCH_BACKEND"] = self.backend  # workers inherit it
        os.environ["DJANGO_SETTINGS_MODULE"] = "bench.peers.django_host.settings"
        django.setup()
        self.task: Any = import_string("bench.peers.django_host.tasks.record")

    def setup(self) -> None:
        """Make the tables."""
        call_command("migrate", verbosity=0)

    def enqueue_each(self, numbers: Iterable[int]) -> None:
        """Enqueue one by one; outside of a transaction each call is one."""
        for number in numbers:
            self.task.enqueue(number)

    def enqueue_at(self, number: int, due: datetime) -> None:
        """Enqueue for a time."""
        self.task.using(run_after=due).enqueue(number)
