"""Runs the statements in `jobs/sql/`: the only place that opens a cursor.

A face runs them on Django's connection, inside the caller's transaction (`DjangoSession`); a worker on a connection of
its own with server-side binding and prepared statements (`WorkerSession`). Both take the same statements and answer
with plain tuples. What a statement means is written in its file, and known to the service that calls it.
"""

import functools
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import psycopg
from django.db import InterfaceError, OperationalError, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg.pq import TransactionStatus

from jobs.conf import settings
from jobs.errors import DatabaseAway
from jobs.literals import array
from jobs.pipeline import Call, Pipeline, Reply, Row

WAKEUP_CHANNEL = "dilamme_wakeup"  # new work; payload: queue, priority, since when to look, and perhaps "later"
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

Fetch = tuple[str, dict[str, Any]]  # a statement's name, and its parameters


class Session(Protocol):
    """A connection that runs named statements."""

    def fetch(self, statement: str, **parameters: Any) -> list[Row]:
        """Run `sql/<statement>.sql` and return its rows."""

    def fetch_together(self, fetches: Sequence[Fetch]) -> list[list[Row]]:
        """Run several, none of which needs the answer of another, in one transaction; return the rows of each."""

    def transaction(self) -> AbstractContextManager[Any]:
        """Make what is fetched inside one transaction."""


@functools.cache
def load(statement: str) -> str:
    """Return the text of `sql/<statement>.sql` without its comments, so that the server need not read them."""
    whole = _INCLUDE.sub(lambda found: load(found[1]), (_SQL / f"{statement}.sql").read_text())
    return _COMMENT.sub("", whole).strip()


def _nothing() -> None:
    """Do nothing while the server works."""


def _written(parameters: dict[str, Any]) -> dict[str, Any]:
    return {name: array(value) if isinstance(value, list) else value for name, value in parameters.items()}


_pipelines: WeakKeyDictionary[psycopg.Connection[Row], Pipeline] = WeakKeyDictionary()


def _pipeline_of(connection: psycopg.Connection[Row]) -> Pipeline:
    """Return what runs our statements on a connection of Django's, and knows which it has prepared there."""
    if (pipeline := _pipelines.get(connection)) is None:
        pipeline = _pipelines[connection] = Pipeline(connection)
    return pipeline


class DjangoSession:
    """Statements on Django's connection: they belong to the transaction that the caller has open."""

    def __init__(self) -> None:
        self._alias = settings.DATABASE

    def fetch(self, statement: str, **parameters: Any) -> list[Row]:
        """Run a statement; Django's database errors pass through."""
        return self.fetch_while(_nothing, statement, **parameters)

    def fetch_while(self, work: Callable[[], object], statement: str, **parameters: Any) -> list[Row]:
        """Run a statement, and do this work of the caller's while the server is at it.

        It is prepared once for each connection, which saves the server more work than a short statement is. Not where
        somebody watches what Django executes, and not behind a pooler that gives every transaction another connection:
        `DISABLE_SERVER_SIDE_CURSORS` is Django's word for that.
        """
        connection, query = connections[self._alias], load(statement)
        if not self._may_pass_by(connection):
            work()
            with connection.cursor() as cursor:
                cursor.execute(query, _written(parameters))
                return cursor.fetchall() if cursor.description else []
        with connection.wrap_database_errors:
            return _pipeline_of(connection.connection).run([Call(query, parameters)], work)[0]

    @staticmethod
    def _may_pass_by(connection: BaseDatabaseWrapper) -> bool:
        """Whether a statement may be run without Django's cursor, whose own checks are made here instead."""
        is_watched = connection.queries_logged or connection.execute_wrappers
        if is_watched or connection.settings_dict.get("DISABLE_SERVER_SIDE_CURSORS"):
            return False
        connection.close_if_health_check_failed()
        connection.ensure_connection()
        connection.validate_thread_sharing()
        connection.validate_no_broken_transaction()
        # The driver opens a transaction with the first statement that goes through it, and only then.
        raw: psycopg.Connection[Row] = connection.connection
        return raw.autocommit or raw.info.transaction_status != TransactionStatus.IDLE

    def fetch_together(self, fetches: Sequence[Fetch]) -> list[list[Row]]:
        """Run several statements, one after the other."""
        with self.transaction():
            return [self.fetch(statement, **parameters) for statement, parameters in fetches]

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
        self._pipeline: Pipeline | None = None
        self.is_new = True  # since the connection was made or lost; whoever cares sets it to False

    def fetch(self, statement: str, **parameters: Any) -> list[Row]:
        """Run a statement; `DatabaseAway` when the server or the connection is gone."""
        return self.fetch_together([(statement, parameters)])[0]

    def fetch_together(self, fetches: Sequence[Fetch]) -> list[list[Row]]:
        """Run several statements in one round trip and one transaction; errors as in `fetch`."""
        calls = [Call(load(statement), parameters) for statement, parameters in fetches]
        with self._away_told_apart():
            return self._ready().run(calls)

    def send(self, fetches: Sequence[Fetch]) -> Reply:
        """Send several statements that are one transaction; others may be sent before it is answered."""
        calls = [Call(load(statement), parameters) for statement, parameters in fetches]
        with self._away_told_apart():
            return self._ready().send(calls)

    def is_answered(self, reply: Reply, timeout: float) -> bool:
        """Wait up to `timeout` seconds for what was sent; errors as in `fetch`."""
        with self._away_told_apart():
            return reply.pipeline.is_answered(reply, timeout)

    def rows_of(self, reply: Reply) -> list[list[Row]]:
        """Wait for what was sent and return the rows of each statement; errors as in `fetch`."""
        with self._away_told_apart():
            return reply.pipeline.rows_of(reply)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Open a transaction, committed at the end of the block, rolled back when it raises."""
        with self._away_told_apart():
            pipeline = self._ready()
            pipeline.settle()
            with pipeline.connection.transaction():
                yield

    def close(self) -> None:
        """Close the connection, if there is one."""
        if self._pipeline is not None:
            self._pipeline.close()
            self._pipeline = None
            self.is_new = True

    def _ready(self) -> Pipeline:
        if self._pipeline is None:
            self._pipeline = Pipeline(connect())
        return self._pipeline

    @contextmanager
    def _away_told_apart(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            is_lost = self._pipeline is None or self._pipeline.connection.closed
            if is_lost or isinstance(error, psycopg.InterfaceError):
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
