"""procrastinate with psycopg, asynchronous workers as its documentation advises, and its own command."""

import os
from collections.abc import Iterable, Sequence
from datetime import datetime

from procrastinate import App, PsycopgConnector

from bench.peers import ledger
from bench.peers.adapter import Counting, script

_CONCURRENCY = 10  # jobs at a time; beyond it more gained nothing

app = App(connector=PsycopgConnector(conninfo=os.environ["DATABASE_URL"]))


@app.task(name="record")  # type: ignore[untyped-decorator]  # its types are not installed here
async def record(number: int) -> None:
    """Note that job `number` ran."""
    ledger.record(number)


class Procrastinate(Counting):
    """The adapter."""

    finished_sql = "select count(*) from procrastinate_jobs where status = 'succeeded'"
    waiting_sql = "select count(*) from procrastinate_jobs where status <> 'succeeded'"

    def setup(self) -> None:
        """Make the tables."""
        app.open()
        app.schema_manager.apply_schema()

    def enqueue_each(self, numbers: Iterable[int]) -> None:
        """Enqueue one by one; each call is a transaction."""
        for number in numbers:
            record.defer(number=number)

    def enqueue_bulk(self, numbers: Sequence[int]) -> None:
        """Enqueue all in one statement."""
        record.batch_defer(*({"number": number} for number in numbers))

    def enqueue_at(self, number: int, due: datetime) -> None:
        """Enqueue for a time."""
        record.configure(schedule_at=due).defer(number=number)

    def workers(self, processes: int) -> list[list[str]]:
        """Return the command of each process; it hears of new jobs, and finds those whose time has come by looking."""
        options = (f"--concurrency={_CONCURRENCY}", "--fetch-job-polling-interval=0.1")
        return [script("procrastinate", "--app", "bench.peers.procrastinate.app", "worker", *options)] * processes

    def close(self) -> None:
        """Leave the database."""
        app.close()
        super().close()


ADAPTER = Procrastinate
