"""What a large table costs a drain: jobs for later, finished ones, blocked ones, and dead rows under a snapshot."""

import os
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from bench import workers

_RUNS = 3
_MILLION = 1_000_000

_FILL = """
insert into dilamme_job (id, type, queue, status, priority, payload, scheduled_at, run_at, created_at, attempt,
  attempts_refunded, max_attempts, unmet, last_error, finished_at)
select gen_random_uuid(), 'bench.noop', 'default', %s, 2, '{}', now() + %s * interval '1 day',
  now() + %s * interval '1 day', now(), 0, 0, 3, %s, '', case when %s = 'completed' then now() - interval '1 day' end
from generate_series(1, %s)
"""


def measure(jobs: int | None, processes: int) -> dict[str, Any]:
    """Drain with an empty table, and with each kind of backlog; medians of three, and what is left of the first."""
    count = jobs or 20_000
    empty = _drain(count, processes)
    figures: dict[str, Any] = {"jobs": count, "empty, jobs per second": empty}
    for name, (status, days, unmet, rows) in {
        "1,000,000 for later": ("pending", 30, 0, _MILLION),
        "100,000 blocked": ("pending", 0, 1, _MILLION // 10),
        "1,000,000 finished": ("completed", 0, 0, _MILLION),
    }.items():
        workers.execute("truncate dilamme_job cascade")
        workers.execute(_FILL, status, days, days, unmet, status, rows)
        workers.execute("analyze dilamme_job")
        figures[f"{name}, of empty"] = _drain(count, processes) / empty
    workers.execute("truncate dilamme_job cascade")
    with _snapshot():
        first = workers.drain(count, processes)
        for _ in range(8):
            last = workers.drain(count, processes)
    figures["snapshot held, ninth drain, of the first"] = last / first
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
