"""A fresh database for each run, dropped at its end."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import django
import psycopg
from psycopg import sql

_NAME = f"dilamme_bench_{os.getpid()}"


@contextmanager
def fresh_database() -> Iterator[None]:
    """Create and migrate a database, and let this process and its children use it."""
    server_url = os.environ["DATABASE_URL"]
    address, _, query = server_url.partition("?")
    name = sql.Identifier(_NAME)
    with psycopg.connect(server_url, autocommit=True) as server:
        server.execute(sql.SQL("drop database if exists {} with (force)").format(name))
        server.execute(sql.SQL("create database {}").format(name))
        os.environ["DATABASE_URL"] = f"{address.rpartition('/')[0]}/{_NAME}" + (f"?{query}" if query else "")
        django.setup()
        from django.core.management import call_command  # noqa: PLC0415  after setup
        from django.db import connections  # noqa: PLC0415  after setup

        call_command("migrate", verbosity=0)
        yield
        connections.close_all()
        server.execute(sql.SQL("drop database {} with (force)").format(name))
