"""The handlers that benchmarks run."""

import asyncio
import time

from jobs import job


@job(name="bench.noop")
def noop() -> None:
    """Do nothing, as fast as possible."""


@job(name="bench.stamp")
def stamp() -> float:
    """Return this machine's monotonic time, which its processes share."""
    return time.monotonic()


@job(name="bench.clock")
def clock() -> float:
    """Return this machine's time of day, which PostgreSQL shares where it runs here."""
    return time.time()


@job(name="bench.nap")
def nap() -> None:
    """Block a thread for 10 ms."""
    time.sleep(0.01)


@job(name="bench.doze")
async def doze() -> None:
    """Wait for 100 ms on the event loop."""
    await asyncio.sleep(0.1)
