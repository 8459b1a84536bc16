"""How fast jobs are made, one by one and in bulk, and how far from bare SQL that is."""

import os
import statistics
import time
from typing import Any

from bench import ceiling
from bench.tasks import noop
from jobs.models import Job

_BULK = 10_000
_RUNS = 3


def measure(jobs: int | None, _: int) -> dict[str, Any]:
    """Enqueue one by one, each its own transaction, and in bulk, between two measurements of the ceiling."""
    count = jobs or 2_000
    url = os.environ["DATABASE_URL"]
    before = ceiling.measure(url)
    single = statistics.median(_singly(count) for _ in range(_RUNS))
    bulk = statistics.median(_in_bulk() for _ in range(_RUNS))
    after = ceiling.measure(url)
    if Job.objects.count() != _RUNS * (count + _BULK):
        raise SystemExit("Not every job was stored.")
    bare = {name: statistics.mean((before[name], after[name])) for name in before}
    return {
        "one by one per second": single,
        "bare INSERT per second": bare["insert/s"],
        "one by one, of bare INSERT": single / bare["insert/s"],
        "bulk of 10,000 per second": bulk,
        "bare unnest per second": bare["unnest/s"],
        "bulk, of bare unnest": bulk / bare["unnest/s"],
    }


def _singly(count: int) -> float:
    started = time.perf_counter()
    for _ in range(count):
        noop.enqueue()
    return count / (time.perf_counter() - started)


def _in_bulk() -> float:
    payloads: list[dict[str, Any]] = [{}] * _BULK
    started = time.perf_counter()
    noop.enqueue_many(payloads)
    return _BULK / (time.perf_counter() - started)
