"""Chancy on its asynchronous executor, woken for more whenever a job ends, with its default plugins."""

import asyncio
import logging
import os
from collections.abc import Iterable, Sequence
from datetime import datetime

from chancy import Chancy, Job, Queue, Worker, job

from bench.peers import ledger
from bench.peers.adapter import Counting, Loop, module

_CONCURRENCY = 300  # jobs at a time, and so as many for each look at the queue
_POLL = 1  # seconds; the least that its table can hold
_OUTGOING = 0.1  # seconds between two times it writes down what ended; a second by default


@job(queue="default")  # type: ignore[untyped-decorator]  # its types are not installed here
async def record(*, number: int) -> None:
    """Note that job `number` ran."""
    ledger.record(number)


class ChancyAdapter(Counting):
    """The adapter."""

    finished_sql = "select count(*) from chancy_jobs where state = 'succeeded'"
    waiting_sql = "select count(*) from chancy_jobs where state <> 'succeeded'"

    def setup(self) -> None:
        """Make the tables, and the queue."""
        self._loop = Loop()
        self._app = _app()
        self._loop.run(self._prepare())

    async def _prepare(self) -> None:
        await self._app.pool.open()
        await self._app.migrate()
        await self._app.declare(
            Queue(
                "default",
                concurrency=_CONCURRENCY,
                executor=Chancy.Executor.Async,
                polling_interval=_POLL,
                eager_polling=True,
            ),
            upsert=True,
        )

    def enqueue_each(self, numbers: Iterable[int]) -> None:
        """Enqueue one by one; each call is a transaction."""
        self._loop.run(self._each(numbers))

    async def _each(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            await self._app.push(_job(number))

    def enqueue_bulk(self, numbers: Sequence[int]) -> None:
        """Enqueue many, which Chancy commits by the thousand."""
        self._loop.run(self._many(numbers))

    async def _many(self, numbers: Sequence[int]) -> None:
        async for _ in self._app.push_many([_job(number) for number in numbers]):
            pass

    def enqueue_at(self, number: int, due: datetime) -> None:
        """Enqueue for a time."""
        self._loop.run(self._app.push(_job(number).with_scheduled_at(due)))

    def workers(self, processes: int) -> list[list[str]]:
        """Return the command of each process."""
        return [module("bench.peers.chancy")] * processes

    def close(self) -> None:
        """Leave the database."""
        self._loop.run(self._app.pool.close())
        super().close()


def _app() -> Chancy:
    log = logging.getLogger("chancy")
    log.setLevel(logging.WARNING)  # it has two lines to say of every job
    return Chancy(os.environ["DATABASE_URL"], log=log)


def _job(number: int) -> Job:
    return record.job.with_kwargs(number=number)


async def _work() -> None:
    async with _app() as app:
        worker = Worker(app)
        worker.send_outgoing_interval = _OUTGOING
        async with worker:
            await worker.wait_for_shutdown()


ADAPTER = ChancyAdapter

if __name__ == "__main__":
    asyncio.run(_work())
