"""How fast jobs are made, one by one and in bulk, and how far from bare SQL that is."""

import os
import statistics
import time
from typing import Any

import psycopg

from bench import ceiling
from bench.tasks import noop
from jobs.ids import uuid7
from jobs.models import Job

_BULK = 10_000
_RUNS = 3
_BULK_RUNS = 9  # every second or third meets a full collection of Python's garbage
_INSERT = """
insert into dilamme_job (
  id, type, queue, status, priority, payload, scheduled_at, run_at, created_at,
  attempt, attempts_refunded, max_attempts, unmet, last_error)
values (%s, 'bare', 'default', 'pending', 2, '{}', now(), now(), now(), 0, 0, 3, 0, '')
"""


def measure(jobs: int | None, _: int) -> dict[str, Any]:
    """Enqueue one by one, each its own transaction, and in bulk, between two measurements of the ceiling."""
    count = jobs or 2_000
    url = os.environ["DATABASE_URL"]
    before = ceiling.measure(url)
    single = statistics.median(_singly(count) for _ in range(_RUNS))
    row = statistics.median(_rows(url, count) for _ in range(_RUNS))
    bulk = statistics.median(_in_bulk() for _ in range(_BULK_RUNS))
    after = ceiling.measure(url)
    if Job.objects.count() != _RUNS * count + _BULK_RUNS * _BULK:
        raise SystemExit("Not every job was stored.")
    bare = {name: statistics.mean((before[name], after[name])) for name in before}
    return {
        "one by one per second": single,
        "bare INSERT per second": bare["insert/s"],
        "one by one, of bare INSERT": single / bare["insert/s"],
        "bare INSERT into the jobs' table per second": row,
        "one by one, of bare INSERT into the jobs' table": single / row,
        "bulk of 10,000 per second": bulk,
        "bare unnest per second": bare["unnest/s"],
        "bulk, of bare unnest": bulk / bare["unnest/s"],
    }


def _singly(count: int) -> float:
    started = time.perf_counter()
    for _ in range(count):
        noop.enqueue()
    return count / (time.perf_counter() - started)


def _rows(url: str, count: int) -> float:
    """Return how fast bare psycopg writes the same rows, unchecked and without a word to the workers."""
    with psycopg.connect(url, autocommit=True, prepare_threshold=0) as connection:
        with connection.cursor(binary=True) as cursor:
            started = time.perf_counter()
            for _ in range(count):
                cursor.execute(_INSERT, (uuid7(),))
            rate = count / (time.perf_counter() - started)
        connection.execute("delete from dilamme_job where type = 'bare'")
    return rate


def _in_bulk() -> float:
    payloads: list[dict[str, Any]] = [{}] * _BULK
    started = time.perf_counter()
    noop.enqueue_many(payloads)
    return _BULK / (time.perf_counter() - started)
