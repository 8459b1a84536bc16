"""How fast jobs are made, one by one and in bulk."""

import time
from typing import Any

from bench.tasks import noop
from jobs.models import Job


def measure(jobs: int | None, _: int) -> dict[str, Any]:
    """Enqueue one by one, each its own transaction, and in bulk."""
    count = jobs or 2_000
    started = time.perf_counter()
    for _ in range(count):
        noop.enqueue()
    single = count / (time.perf_counter() - started)
    started = time.perf_counter()
    noop.enqueue_many([{}] * 10_000)
    bulk = 10_000 / (time.perf_counter() - started)
    if Job.objects.count() != count + 10_000:
        raise SystemExit("Not every job was stored.")
    return {"one by one per second": single, "bulk of 10,000 per second": bulk}
