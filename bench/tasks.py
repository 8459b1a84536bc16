"""The handlers that benchmarks run."""

import time

from jobs import job


@job(name="bench.noop")
def noop() -> None:
    """Do nothing, as fast as possible."""


@job(name="bench.stamp")
def stamp() -> float:
    """Return this machine's monotonic time, which its processes share."""
    return time.monotonic()
