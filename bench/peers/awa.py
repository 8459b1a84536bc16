"""awa: its synchronous client to enqueue, its asynchronous one for workers; the engine of both is native code."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote

import awa
from psycopg import conninfo

from bench.peers import ledger
from bench.peers.adapter import Counting, module

_QUEUE = "default"
# Nearly as many at a time as it claims at once, 512, and no time limit, which none of the others has.
_WORKER = {"name": _QUEUE, "max_workers": 500, "deadline_duration_ms": 0}


@dataclass
class Record:
    """What a job carries."""

    number: int


class Awa(Counting):
    """The adapter.

    It keeps the jobs of the last seconds and a count of older ones. Its view of all jobs takes seconds to count, so the
    tables beneath are counted.
    """

    _kept_sql = (
        "((select coalesce(sum(completed_count), 0) from awa.receipt_completion_batches)"
        " + (select count(*) from awa.done_entries where state = 'completed'))"
    )
    finished_sql = (
        f"select {_kept_sql} + (select coalesce(sum(pruned_completed_count), 0) from awa.queue_terminal_rollups)"
    )
    waiting_sql = (
        f"select (select count(*) from awa.ready_entries) + (select count(*) from awa.deferred_jobs) - {_kept_sql}"
    )

    def setup(self) -> None:
        """Make the tables; a first worker turns the engine of a new installation on."""
        self._client = awa.Client(_url())
        self._client.migrate()
        asyncio.run(_work_until(_now()))

    def enqueue_each(self, numbers: Iterable[int]) -> None:
        """Enqueue one by one; each call is a transaction."""
        for number in numbers:
            self._client.insert(Record(number), queue=_QUEUE)

    def enqueue_bulk(self, numbers: Sequence[int]) -> None:
        """Enqueue all by one COPY."""
        self._client.enqueue_many_copy([Record(number) for number in numbers], queue=_QUEUE)

    def enqueue_at(self, number: int, due: datetime) -> None:
        """Enqueue for a time."""
        self._client.insert(Record(number), queue=_QUEUE, run_at=due)

    def workers(self, processes: int) -> list[list[str]]:
        """Return the command of each process."""
        return [module("bench.peers.awa")] * processes

    def close(self) -> None:
        """Leave the database."""
        self._client.close()
        super().close()


def _url() -> str:
    """Return the database's URL as awa reads it: a socket's directory has to stand where a host would."""
    parts = {
        name: quote(str(value), safe="")
        for name, value in conninfo.conninfo_to_dict(os.environ["DATABASE_URL"]).items()
    }
    login = parts.get("user", "postgres") + (f":{parts['password']}" if "password" in parts else "")
    return f"postgres://{login}@{parts.get('host', 'localhost')}:{parts.get('port', 5432)}/{parts['dbname']}"


async def _now() -> None:
    """Return at once."""


async def _signalled() -> None:
    """Return when this process is asked to leave."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await stop.wait()


async def _work_until(end: Awaitable[None]) -> None:
    client = awa.AsyncClient(_url())

    @client.task(Record, queue=_QUEUE)  # type: ignore[untyped-decorator]  # its types are not installed here
    async def record(job: Any) -> None:
        ledger.record(job.args.number)

    await client.start([_WORKER], promote_interval_ms=100)
    await end
    await client.shutdown()


ADAPTER = Awa

if __name__ == "__main__":
    asyncio.run(_work_until(_signalled()))
