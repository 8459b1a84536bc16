"""Fresh databases on the server that is measured on, one for each measurement."""

import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import sql

_NAME = f"dilamme_bench_{os.getpid()}"


@contextmanager
def fresh(server_url: str) -> Iterator[str]:
    """Create a database, yield its URL, and drop it with whatever is connected to it."""
    name = sql.Identifier(_NAME)
    address, _, query = server_url.partition("?")
    with psycopg.connect(server_url, autocommit=True) as server:
        server.execute(sql.SQL("drop database if exists {} with (force)").format(name))
        server.execute(sql.SQL("create database {}").format(name))
        with contextlib.suppress(psycopg.errors.InsufficientPrivilege):
            server.execute("checkpoint")  # none is due because of what was measured before
    try:
        yield f"{address.rpartition('/')[0]}/{_NAME}" + (f"?{query}" if query else "")
    finally:
        with psycopg.connect(server_url, autocommit=True) as server:
            server.execute(sql.SQL("drop database if exists {} with (force)").format(name))


def description(server_url: str) -> dict[str, str]:
    """Return what of the server bears on the figures."""
    names = ("server_version", "fsync", "synchronous_commit", "full_page_writes", "shared_buffers")
    with psycopg.connect(server_url, autocommit=True) as server:
        return {name: str(server.execute("select current_setting(%s)", [name]).fetchone()[0]) for name in names}  # type: ignore[index]  # always a row
