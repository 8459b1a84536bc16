"""What the measurements ask of a system, and the connection that most adapters count their rows with."""

import asyncio
import os
import sys
from collections.abc import Coroutine, Iterable, Sequence
from datetime import datetime
from typing import Any, Protocol

import psycopg


class Adapter(Protocol):
    """One system, in its own words. Jobs are known by a number, which their handler notes in the ledger."""

    def setup(self) -> None:
        """Make the system's tables in the empty database that `DATABASE_URL` names, and connect to it."""

    def enqueue_each(self, numbers: Iterable[int]) -> float | None:
        """Enqueue jobs one by one, each in a transaction of its own.

        Returns when the last was committed, on the monotonic clock, where the call itself returns noticeably later.
        """

    def enqueue_bulk(self, numbers: Sequence[int]) -> None:
        """Enqueue jobs by the system's call for many; never called where the registry says there is none."""

    def enqueue_at(self, number: int, due: datetime) -> None:
        """Enqueue a job to run at a time."""

    def workers(self, processes: int) -> list[list[str]]:
        """Return the commands that together are this many processes that run jobs."""

    def finished(self) -> int:
        """Return how many jobs the system itself takes for done."""

    def waiting(self) -> int:
        """Return how many jobs the system has that are not done, for whatever reason."""

    def close(self) -> None:
        """Leave the database."""


class Counting:
    """The part of an adapter that counts rows by SQL, on a connection of its own."""

    finished_sql: str
    waiting_sql: str

    def __init__(self) -> None:
        self._connection: psycopg.Connection[Any] | None = None

    def finished(self) -> int:
        """Return how many jobs the system itself takes for done."""
        return self.number(self.finished_sql)

    def waiting(self) -> int:
        """Return how many jobs the system has that are not done."""
        return self.number(self.waiting_sql)

    def number(self, query: str) -> int:
        """Return the first value of a query, as a number."""
        if self._connection is None:
            self._connection = psycopg.connect(os.environ["DATABASE_URL"], autocommit=True)
        row = self._connection.execute(query.encode()).fetchone()
        return int(row[0]) if row else 0

    def close(self) -> None:
        """Leave the database."""
        if self._connection is not None:
            self._connection.close()


class Loop:
    """An event loop for adapters of systems whose interface is asynchronous; one, because connections belong to it."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine to its end, and return what it returns."""
        return self._loop.run_until_complete(work)


def script(name: str, *arguments: str) -> list[str]:
    """Return the command that runs a console script of this interpreter's environment."""
    return [os.path.join(os.path.dirname(sys.executable), name), *arguments]  # noqa: PTH118, PTH120


def module(name: str, *arguments: str) -> list[str]:
    """Return the command that runs a module with this interpreter."""
    return [sys.executable, "-m", name, *arguments]
