"""Runs the statements in `jobs/sql/`: the only place that opens a cursor.

A face runs them on Django's connection, inside the caller's transaction (`DjangoSession`); a worker on a connection of
its own with server-side binding and prepared statements (`WorkerSession`). Both take the same statements and answer
with plain tuples. What a statement means is written in its file, and known to the service that calls it.
"""

import functools
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Protocol

import psycopg
from django.db import InterfaceError, OperationalError, connections, transaction

from jobs.conf import settings
from jobs.errors import DatabaseAway

WAKEUP_CHANNEL = "dilamme_wakeup"  # new work; payload: the queue, with @later when it is not due yet
CONTROL_CHANNEL = "dilamme_control"  # word to the workers; payload: cancel:<job id>
LIVE_CHANNEL = "dilamme_live"  # what happened to jobs, for those who watch; payload: JSON

_SQL = Path(__file__).parent / "sql"
_INCLUDE = re.compile(r"^-- include (\w+)$", re.MULTILINE)
_COMMENT = re.compile(r"^\s*--.*\n?|\s+-- .*$", re.MULTILINE)

# A dead peer is noticed within half a minute unless the host's settings say otherwise.
_KEEPALIVE = {"connect_timeout": 5, "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3}
# Arguments of Django's own that mean something else, or nothing, to a connection of ours.
_DJANGO_ONLY = ("context", "cursor_factory", "prepare_threshold", "server_side_binding", "pool")

# The connection failed, the server goes down or comes up, takes no more connections, or only reads (a standby).
_AWAY = ("08", "57P01", "57P02", "57P03", "53300", "25006")

Row = tuple[Any, ...]


class Session(Protocol):
    """A connection that runs named statements."""

    def fetch(self, statement: str, **parameters: Any) -> list[Row]:
        """Run `sql/<statement>.sql` and return its rows."""

    def transaction(self) -> AbstractContextManager[Any]:
        """Make what is fetched inside one transaction."""


@functools.cache
def load(statement: str) -> str:
    """Return the text of `sql/<statement>.sql` without its comments, so that the server need not read them."""
    whole = _INCLUDE.sub(lambda found: load(found[1]), (_SQL / f"{statement}.sql").read_text())
    return _COMMENT.sub("", whole).strip()


class DjangoSession:
    """Statements on Django's connection: they belong to the transaction that the caller has open."""

    def __init__(self) -> None:
        self._alias = settings.DATABASE

    def fetch(self, statement: str, **parameters: Any) -> list[Row]:
        """Run a statement; Django's database errors pass through."""
        with connections[self._alias].cursor() as cursor:
            cursor.execute(load(statement), parameters)
            return cursor.fetchall() if cursor.description else []

    def transaction(self) -> AbstractContextManager[Any]:
        """Return `atomic()` on the connection of the jobs."""
        return transaction.atomic(using=self._alias)

    @property
    def is_free(self) -> bool:
        """Whether the caller has no transaction open; known without asking the database."""
        connection = connections[self._alias]
        commits = connection.settings_dict["AUTOCOMMIT"] if connection.connection is None else connection.autocommit
        return bool(commits) and not connection.in_atomic_block

    def found_away(self, error: Exception) -> bool:
        """Tell whether a statement failed because the server is away; if so, close what is left of the connection."""
        state = getattr(error.__cause__, "sqlstate", None)
        is_away = state.startswith(_AWAY) if state else isinstance(error, (OperationalError, InterfaceError))
        if is_away:
            connections[self._alias].close()
        return is_away


class WorkerSession:
    """A connection of a worker's own. After `DatabaseAway` it is closed, and the next call connects again."""

    def __init__(self) -> None:
        self._connection: psycopg.Connection[Row] | None = None
        self.is_new = True  # since the connection was made or lost; whoever cares sets it to False

    def fetch(self, statement: str, **parameters: Any) -> list[Row]:
        """Run a statement; `DatabaseAway` when the server or the connection is gone."""
        with self._away_told_apart():
            cursor = self._connected().cursor(binary=True)
            cursor.execute(load(statement), parameters)
            return cursor.fetchall() if cursor.description else []

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Open a transaction, committed at the end of the block, rolled back when it raises."""
        with self._away_told_apart(), self._connected().transaction():
            yield

    def close(self) -> None:
        """Close the connection, if there is one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
            self.is_new = True

    def _connected(self) -> psycopg.Connection[Row]:
        if self._connection is None:
            self._connection = connect()
            self._connection.prepare_threshold = 1  # the same few statements, for the life of the process
        return self._connection

    @contextmanager
    def _away_told_apart(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            if self._connection is None or self._connection.closed or isinstance(error, psycopg.InterfaceError):
                self.close()
                raise DatabaseAway(f"PostgreSQL is away: {' '.join(str(error).split())}") from error
            raise


def connect(url: str = "") -> psycopg.Connection[Row]:
    """Open a connection in autocommit to the jobs' database, or to `url`, with psycopg's own defaults.

    Raises psycopg.OperationalError when it cannot be reached.
    """
    return psycopg.connect(autocommit=True, **connection_arguments(url))


def connection_arguments(url: str = "") -> dict[str, Any]:
    """Return libpq's arguments for the jobs' database, or for `url`."""
    if url:
        return {**_KEEPALIVE, "conninfo": url}
    given = connections[settings.DATABASE].get_connection_params()
    return {**_KEEPALIVE, **{name: value for name, value in given.items() if name not in _DJANGO_ONLY}}
