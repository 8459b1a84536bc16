"""pgqueuer with asyncpg, which its documentation calls the fastest of its drivers, on uvloop as `pgq run` is.

`pgq run` itself fails with the typer that belongs to this version, so the worker is started by the function behind it.
"""

import os
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import asyncpg
import pgqueuer
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries

from bench.peers import ledger
from bench.peers.adapter import Counting, Loop, module

_ENTRYPOINT = "record"
_BATCH = 500  # jobs for each look at the queue: many, because they are short


@asynccontextmanager
async def worker() -> AsyncIterator[PgQueuer]:
    """Make what a worker process runs."""
    connection = await asyncpg.connect(os.environ["DATABASE_URL"])
    queue = PgQueuer(AsyncpgDriver(connection))

    @queue.entrypoint(_ENTRYPOINT)  # type: ignore[untyped-decorator]  # its types are not installed here
    async def record(job: Job) -> None:
        ledger.record(int(job.payload or b""))

    yield queue
    await connection.close()


class PgQueuerAdapter(Counting):
    """The adapter. Jobs that are done leave the queue, and a line in its log."""

    finished_sql = "select count(*) from pgqueuer_log where status = 'successful'"
    waiting_sql = "select count(*) from pgqueuer"

    def setup(self) -> None:
        """Make the tables, with the vacuum settings that are part of its checklist."""
        self._loop = Loop()
        self._queries = self._loop.run(_prepared())

    def enqueue_each(self, numbers: Iterable[int]) -> None:
        """Enqueue one by one; outside of a transaction each call is one."""
        self._loop.run(self._each(numbers))

    async def _each(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            await self._queries.enqueue(_ENTRYPOINT, str(number).encode())

    def enqueue_bulk(self, numbers: Sequence[int]) -> None:
        """Enqueue all in one statement."""
        payloads = [str(number).encode() for number in numbers]
        count = len(payloads)
        self._loop.run(self._queries.enqueue([_ENTRYPOINT] * count, payloads, [0] * count))

    def enqueue_at(self, number: int, due: datetime) -> None:
        """Enqueue for a time, which pgqueuer wants to know as a delay."""
        delay = due - datetime.now(UTC)
        self._loop.run(self._queries.enqueue(_ENTRYPOINT, str(number).encode(), execute_after=delay))

    def workers(self, processes: int) -> list[list[str]]:
        """Return the command of each process."""
        return [module("bench.peers.pgqueuer")] * processes


async def _prepared() -> Queries:
    queries = Queries(AsyncpgDriver(await asyncpg.connect(os.environ["DATABASE_URL"])))
    await queries.install()
    await queries.optimize_autovacuum()
    return queries


ADAPTER = PgQueuerAdapter

if __name__ == "__main__":
    uvloop.run(pgqueuer.run(worker, batch_size=_BATCH))
