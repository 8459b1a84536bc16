"""Owns the measurement of the heap and the wheel against each other and against their floors.

It never believes a structure: what comes out is checked in every run, and a wrong result raises WrongResult. All get
the same jobs. Times are taken with the garbage collector on, as in production, so that what a structure makes it do is
in the price; but everything made before is frozen first, so that it never walks over the jobs of the measurement.
Memory is measured in a run of its own, since tracing slows everything down.

As a command, `python -m scheduling.comparison`, it prints the figures of one size as JSON, so that another process can
have them measured without lending its interpreter to it.
"""

import argparse
import gc
import json
import statistics
import sys
import time
import tracemalloc
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Final, TypeAlias

from scheduling.checking import WrongResult
from scheduling.contenders import CONTENDERS, TICK, Contender, Workload

ALGORITHMS: Final = ("heap", "wheel")
FLOORS: Final = {"heap": "heapq", "wheel": "dict"}
"""Which floor stands below which structure."""

SEED: Final = 1
TICKS: Final = 10_000


@dataclass(frozen=True, slots=True)
class Figures:
    """What one algorithm costs at one size. Times are medians over the runs."""

    insert_ms: float
    """Milliseconds to insert all entries."""
    retrieve_ms: float
    """Milliseconds to take them all out in order, one after the other."""
    drain_ms: float
    """Milliseconds to take them all out in order, at once."""
    cancel_ms: float
    """Milliseconds to cancel them all, in random order."""
    tick_us: float
    """Microseconds of one tick, or of one re-scoring, at which nothing happens: a mean over `TICKS` in each run."""
    bytes_per_entry: float
    """What each entry takes beyond its job: the id, the numbers and the object were there before."""


_Times: TypeAlias = tuple[float, float, float, float, float]
"""Seconds of one run: to insert, to retrieve, to drain, to cancel, and for all ticks."""

MEASURES: Final = tuple(field.name for field in fields(Figures))


@dataclass(frozen=True, slots=True)
class Comparison:
    """The figures of several algorithms on the same `n` jobs."""

    n: int
    runs: int
    seed: int
    figures: dict[str, Figures]

    def ratio(self, measure: str, over: str, under: str) -> float:
        """Return how many times as much `over` costs as `under`."""
        dividend, divisor = (float(getattr(self.figures[name], measure)) for name in (over, under))
        return dividend / divisor


def runs_for(n: int) -> int:
    """Return of how many runs the median is taken: fewer for large sizes, where one run averages over more."""
    return 9 if n <= 10_000 else 5 if n <= 100_000 else 3


def compare(
    n: int,
    algorithms: Iterable[str] = CONTENDERS,
    *,
    runs: int | None = None,
    seed: int = SEED,
    progress: Callable[[str], None] = lambda _: None,
) -> Comparison:
    """Measure the algorithms on `n` jobs, in turns, so that a slow moment of the machine hits all of them.

    `progress` is called with a line before each step. Raises WrongResult, and ValueError for what cannot be measured.
    """
    runs = runs_for(n) if runs is None else runs
    chosen = list(algorithms)
    if n < 1 or runs < 1:
        raise ValueError(f"The size is {n} and the number of runs {runs}: give at least 1 of each.")
    if unknown := [name for name in chosen if name not in CONTENDERS]:
        raise ValueError(f"{unknown[0]!r} is no algorithm: give some of {', '.join(CONTENDERS)}.")
    workload = Workload.of(n, seed)
    samples: dict[str, list[_Times]] = {name: [] for name in chosen}
    for run in range(1, runs + 1):
        for name in chosen:
            progress(f"{n:,} jobs, {name}, run {run} of {runs}")
            samples[name].append(_times(CONTENDERS[name], workload))
    figures = {}
    for name in chosen:
        progress(f"{n:,} jobs, {name}, memory")
        figures[name] = _figures(samples[name], _bytes_per_entry(CONTENDERS[name], workload))
    return Comparison(n, runs, seed, figures)


def _figures(samples: Sequence[_Times], bytes_per_entry: float) -> Figures:
    insert, retrieve, drain, cancel, tick = map(statistics.median, zip(*samples, strict=True))
    return Figures(insert * 1e3, retrieve * 1e3, drain * 1e3, cancel * 1e3, tick / TICKS * 1e6, bytes_per_entry)


def _times(make: Callable[[], Contender], workload: Workload) -> _Times:
    jobs = workload.jobs
    contender = make()
    insert, _ = _timed(contender.fill, jobs)
    retrieve, drained = _timed(contender.drain)
    contender.check(drained, jobs)
    del drained
    contender = make()
    contender.fill(jobs)
    drain, flushed = _timed(contender.flush)
    contender.check_flushed(flushed, jobs)
    del flushed
    contender = make()
    contender.fill(jobs)
    # Side by side in memory: where a large structure has scattered them, looking them up would cost more than the tick.
    times = array("d", (contender.clock + number * TICK for number in range(1, TICKS + 1)))
    ticks, happened = _timed(contender.tick, times)
    if any(happened) or len(contender) != len(jobs):
        raise WrongResult(f"{contender.who} did something at a tick at which nothing is due.")
    cancel, _ = _timed(contender.cancel, workload.shuffled)
    if len(contender) or contender.drain():
        raise WrongResult(f"{contender.who} kept jobs that were cancelled.")
    return insert, retrieve, drain, cancel, ticks


def _timed(function: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    """Return the seconds that a call takes, and its result."""
    gc.collect()
    gc.freeze()
    try:
        started = time.perf_counter()
        result = function(*arguments)
        return time.perf_counter() - started, result
    finally:
        gc.unfreeze()


def _bytes_per_entry(make: Callable[[], Contender], workload: Workload) -> float:
    contender = make()
    gc.collect()  # or tuples that lie ready to be used again would look as if they took nothing
    tracemalloc.start()
    try:
        contender.fill(workload.jobs)
        return tracemalloc.get_traced_memory()[0] / len(workload.jobs)
    finally:
        tracemalloc.stop()


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare, and print the result as JSON."""
    parser = argparse.ArgumentParser("python -m scheduling.comparison", description="Prints figures as JSON.")
    parser.add_argument("n", type=int, help="how many jobs")
    parser.add_argument("algorithms", nargs="+", choices=CONTENDERS)
    parser.add_argument("--runs", type=int, help="of which the median is taken; fewer for large sizes if left out")
    options = parser.parse_args(arguments)
    found = compare(options.n, options.algorithms, runs=options.runs)
    json.dump(asdict(found), sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
