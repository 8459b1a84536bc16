"""Django on a fresh database for each run, which is dropped at its end, however that comes."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import django

from bench import database


@contextmanager
def fresh_database() -> Iterator[None]:
    """Create and migrate a database, and let this process and its children use it."""
    with database.fresh(os.environ["DATABASE_URL"]) as os.environ["DATABASE_URL"]:
        django.setup()
        from django.core.management import call_command  # noqa: PLC0415  after setup
        from django.db import connections  # noqa: PLC0415  after setup

        call_command("migrate", verbosity=0)
        yield
        connections.close_all()
