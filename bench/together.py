"""What several processes reach that enqueue at once, when each commit notifies a busy worker and when none does.

Commits that notify wait for each other in PostgreSQL. A worker with a backlog says so in its row, and is not told of
more: the other figure is taken after that word of its was wiped out.
"""

import multiprocessing
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing.synchronize import Barrier
from typing import Any

import django

_PROCESSES = 8
_RUNS = 3
_BACKLOG = 20_000  # jobs of 10 ms for one slot: more than are done meanwhile

_barrier: Barrier | None = None  # of a process that enqueues: given to it as it starts


def measure(jobs: int | None, _: int) -> dict[str, Any]:
    """Enqueue one by one from eight processes, in turn with and without notifications."""
    from bench import workers  # noqa: PLC0415  after setup, which a process of the pool does itself

    count = (jobs or 8_000) // _PROCESSES
    rates: dict[bool, list[float]] = {True: [], False: []}
    with _busy_worker():
        backlog = workers.execute("select saturated from dilamme_worker")
        for _ in range(_RUNS):
            for is_told, measured in rates.items():
                workers.execute("update dilamme_worker set saturated = %s", [] if is_told else backlog)
                measured.append(_rate(count))
    told, untold = statistics.median(rates[True]), statistics.median(rates[False])
    return {
        "processes that enqueue": _PROCESSES,
        "each commit notifies, jobs per second": told,
        "none does, jobs per second": untold,
        "without, of with": untold / told,
    }


@contextmanager
def _busy_worker() -> Iterator[None]:
    """Run a worker with one slot and a backlog until it has said so, and until the block ends."""
    from bench import workers  # noqa: PLC0415  after setup
    from bench.tasks import nap  # noqa: PLC0415  after setup

    nap.enqueue_many([{}] * _BACKLOG)
    process = subprocess.Popen(
        [sys.executable, "manage.py", "runworker", "--concurrency", "1"], stderr=subprocess.DEVNULL
    )
    try:
        while not workers.execute("select count(*) from dilamme_worker where saturated <> '{}'"):
            time.sleep(0.05)
        yield
    finally:
        process.terminate()
        process.wait()


def _rate(count: int) -> float:
    spawn = multiprocessing.get_context("spawn")
    barrier = spawn.Barrier(_PROCESSES)
    with ProcessPoolExecutor(_PROCESSES, mp_context=spawn, initializer=_enter, initargs=(barrier,)) as pool:
        spans = list(pool.map(_enqueue, [count] * _PROCESSES))
    return _PROCESSES * count / (max(ended for _, ended in spans) - min(began for began, _ in spans))


def _enter(barrier: Barrier) -> None:
    global _barrier  # noqa: PLW0603  a barrier can only be handed to a process that starts
    _barrier = barrier
    django.setup()


def _enqueue(count: int) -> tuple[float, float]:
    """Enqueue so many jobs, each its own transaction; returns when that began and ended."""
    from bench.tasks import noop  # noqa: PLC0415  after setup

    if _barrier is None:
        raise RuntimeError("Only for a process that was started with a barrier.")
    noop.enqueue()  # connects
    _barrier.wait()
    began = time.monotonic()
    for _ in range(count):
        noop.enqueue()
    return began, time.monotonic()
