"""What this server can do for a job queue at most: bare SQL on a table like a job table, and no handler.

Nothing here keeps what a queue must keep: no leases, no history, no retries, no notification. It is what the figures
of job queues are held against, and knows neither Dilamme nor Django.
"""

import multiprocessing
import statistics
import time
import uuid
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager
from multiprocessing.synchronize import Barrier
from typing import Any

import psycopg

_SCHEMA = """
drop table if exists bench_ceiling;
create table bench_ceiling (
  id uuid primary key,
  type text not null,
  status smallint not null default 0,
  priority real not null default 2,
  payload jsonb not null,
  created_at timestamptz not null default now(),
  run_at timestamptz not null default now(),
  started_at timestamptz,
  finished_at timestamptz,
  attempt int not null default 0,
  worker_id uuid
);
create index bench_ceiling_ready on bench_ceiling (priority, run_at, id) where status = 0;
"""

_INSERT = "insert into bench_ceiling (id, type, payload) values (%s, 'noop', %s::text::jsonb)"

_UNNEST = """
insert into bench_ceiling (id, type, payload)
select id, 'noop', payload::jsonb from unnest(%s::uuid[], %s::text[]) given (id, payload)
"""

_COPY = "copy bench_ceiling (id, type, payload) from stdin"

_CLAIM = """
update bench_ceiling set status = 1, started_at = clock_timestamp(), attempt = attempt + 1, worker_id = %s
where id = any(array(
  select id from bench_ceiling where status = 0 and run_at <= now()
  order by priority, run_at, id limit %s for update skip locked))
returning id, type, payload, attempt
"""

_FINISH = """
update bench_ceiling set status = 2, finished_at = clock_timestamp(), worker_id = null
where id = any(%s::uuid[]) and status = 1 and worker_id = %s
"""

_BATCH = 100  # rows claimed, and finished, in one statement
_QUEUED = 40_000  # rows to claim and finish
_SINGLES = 2_000
_BULK = 10_000
_REPEATS = 3  # of a bulk insert: one alone is over too soon to be believed
_PATIENCE = 60.0  # seconds in which all processes have to have started

_barrier: Barrier | None = None  # of a process that claims: given to it as it starts


def measure(url: str) -> dict[str, float]:
    """Measure on the database of this URL, in a table that is dropped afterwards; returns rates per second.

    Claiming and finishing is one transaction for each round: finish the last hundred, claim the next. One by one means
    a transaction each. Statements are prepared; parameters and results are binary where psycopg can.
    """
    with _connection(url) as connection:
        connection.execute(_SCHEMA.encode(), prepare=False)
        figures = {
            "insert/s": _singles(connection),
            "unnest/s": statistics.median(_unnest(connection) for _ in range(_REPEATS)),
            "copy/s": statistics.median(_copy(connection) for _ in range(_REPEATS)),
        }
        for processes in (1, 2):
            _fill(connection)
            figures[f"claim and finish x{processes}/s"] = _claim_and_finish(url, processes)
        connection.execute("drop table bench_ceiling")
    return figures


def _connection(url: str) -> AbstractContextManager[psycopg.Connection[Any]]:
    return psycopg.connect(url, autocommit=True, prepare_threshold=0)


def _rows(count: int) -> tuple[list[uuid.UUID], list[str]]:
    """Return ids in ascending order, as a queue with ids of version 7 has them, and payloads."""
    start = time.time_ns() << 64
    return [uuid.UUID(int=start + number) for number in range(count)], [f'{{"number": {n}}}' for n in range(count)]


def _singles(connection: psycopg.Connection[Any]) -> float:
    connection.execute("truncate bench_ceiling")
    rows = list(zip(*_rows(_SINGLES), strict=True))
    with connection.cursor(binary=True) as cursor:
        started = time.perf_counter()
        for row in rows:
            cursor.execute(_INSERT, row)
        return _SINGLES / (time.perf_counter() - started)


def _unnest(connection: psycopg.Connection[Any]) -> float:
    connection.execute("truncate bench_ceiling")
    rows = _rows(_BULK)
    started = time.perf_counter()
    connection.execute(_UNNEST, rows, binary=True)
    return _BULK / (time.perf_counter() - started)


def _copy(connection: psycopg.Connection[Any]) -> float:
    connection.execute("truncate bench_ceiling")
    rows = _rows(_BULK)
    started = time.perf_counter()
    with connection.cursor() as cursor, cursor.copy(_COPY) as copy:
        for id_, payload in zip(*rows, strict=True):
            copy.write_row((id_, "noop", payload))
    return _BULK / (time.perf_counter() - started)


def _fill(connection: psycopg.Connection[Any]) -> None:
    connection.execute("truncate bench_ceiling")
    connection.execute(_UNNEST, _rows(_QUEUED))
    connection.execute("analyze bench_ceiling")


def _claim_and_finish(url: str, processes: int) -> float:
    """Return the rate at which processes that start together empty the table."""
    spawn = multiprocessing.get_context("spawn")
    barrier = spawn.Barrier(processes)
    with ProcessPoolExecutor(processes, mp_context=spawn, initializer=_enter, initargs=(barrier,)) as pool:
        shares = list(pool.map(_empty, [url] * processes))
    done = sum(count for count, _, _ in shares)
    if done != _QUEUED:
        raise SystemExit(f"{done:,} rows were finished, of {_QUEUED:,}.")
    return done / (max(ended for _, _, ended in shares) - min(began for _, began, _ in shares))


def _enter(barrier: Barrier) -> None:
    global _barrier  # noqa: PLW0603  a barrier can only be handed to a process that starts
    _barrier = barrier


def _empty(url: str) -> tuple[int, float, float]:
    """Claim and finish until nothing is left; returns how many, and from when to when on the monotonic clock."""
    if _barrier is None:
        raise RuntimeError("Only for a process that was started with a barrier.")
    me, done = uuid.uuid4(), 0
    claimed: list[uuid.UUID] = []
    with _connection(url) as connection, connection.cursor(binary=True) as cursor:
        _barrier.wait(_PATIENCE)
        began = time.monotonic()
        while True:
            with connection.transaction():
                if claimed:
                    done += cursor.execute(_FINISH, (claimed, me)).rowcount
                claimed = [row[0] for row in cursor.execute(_CLAIM, (me, _BATCH))]
            if not claimed:
                return done, began, time.monotonic()
