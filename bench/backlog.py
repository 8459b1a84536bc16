"""What a large table costs a drain: jobs for later, finished ones, blocked ones, and dead rows under a snapshot."""

import os
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from bench import workers
from bench.progress import Bar

_RUNS = 3
_DRAINS = 9  # under a snapshot that is held
_MILLION = 1_000_000
_BACKLOGS = {  # status, days until due, unmet parents, rows
    "1,000,000 for later": ("pending", 30, 0, _MILLION),
    "100,000 blocked": ("pending", 0, 1, _MILLION // 10),
    "1,000,000 finished": ("completed", 0, 0, _MILLION),
}

_FILL = """
insert into dilamme_job (id, type, queue, status, priority, payload, scheduled_at, run_at, created_at, attempt,
  attempts_refunded, max_attempts, unmet, last_error, finished_at)
select gen_random_uuid(), 'bench.noop', 'default', %s, 2, '{}', now() + %s * interval '1 day',
  now() + %s * interval '1 day', now(), 0, 0, 3, %s, '', case when %s = 'completed' then now() - interval '1 day' end
from generate_series(1, %s)
"""


def measure(jobs: int | None, processes: int) -> dict[str, Any]:
    """Drain with an empty table, and with each kind of backlog; medians of three, and what is left of the first."""
    count, bar = jobs or 20_000, Bar(len(_BACKLOGS) + 1 + _DRAINS)
    bar.begin("an empty table")
    empty = _drain(count, processes)
    figures: dict[str, Any] = {"jobs": count, "empty, jobs per second": empty}
    for name, (status, days, unmet, rows) in _BACKLOGS.items():
        bar.begin(name)
        workers.execute("truncate dilamme_job cascade")
        workers.execute(_FILL, status, days, days, unmet, status, rows)
        workers.execute("analyze dilamme_job")
        figures[f"{name}, of empty"] = _drain(count, processes) / empty
    workers.execute("truncate dilamme_job cascade")
    rates = []
    with _snapshot():
        for number in range(1, _DRAINS + 1):
            bar.begin(f"a snapshot held, drain {number}")
            rates.append(workers.drain(count, processes))
    bar.end()
    figures["snapshot held, ninth drain, of the first"] = rates[-1] / rates[0]
    return figures


def _drain(count: int, processes: int) -> float:
    return statistics.median(workers.drain(count, processes) for _ in range(_RUNS))


@contextmanager
def _snapshot() -> Iterator[None]:
    """Hold a snapshot in another session: nothing that dies from now on can be cleaned away."""
    with psycopg.connect(os.environ["DATABASE_URL"]) as holder:
        holder.execute("set transaction isolation level repeatable read")
        holder.execute("select count(*) from dilamme_job")
        yield
