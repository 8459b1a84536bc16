"""How fast workers empty a queue of jobs that do nothing, and how far from bare SQL that is."""

import os
import statistics
from typing import Any

from bench import ceiling, workers

_RUNS = 3


def measure(jobs: int | None, processes: int) -> dict[str, Any]:
    """Drain three times, between two measurements of the ceiling."""
    count = jobs or 20_000
    bare = f"claim and finish x{min(processes, 2)}/s"
    before = ceiling.measure(os.environ["DATABASE_URL"])[bare]
    rates = [workers.drain(count, processes) for _ in range(_RUNS)]
    after = ceiling.measure(os.environ["DATABASE_URL"])[bare]
    rate = statistics.median(rates)
    return {
        "jobs": count,
        "processes": processes,
        **{f"run {number}, jobs per second": rate for number, rate in enumerate(rates, 1)},
        "jobs per second": rate,
        "ceiling before, per second": before,
        "ceiling after, per second": after,
        "of the ceiling": rate / statistics.mean((before, after)),
    }
