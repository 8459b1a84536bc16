"""The comparison of the structures: that it measures all it says, and that no wrong result gets past it."""

import gc
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from scheduling import comparison
from scheduling.checking import WrongResult, check_order, check_times
from scheduling.comparison import ALGORITHMS, FLOORS, MEASURES, Comparison, Figures, compare, runs_for
from scheduling.contenders import CONTENDERS, TICK, Contender, Job, Workload

ROOT = Path(__file__).resolve().parent.parent.parent
WORKLOAD = Workload.of(300, seed=7)
JOBS = WORKLOAD.jobs

each = pytest.mark.parametrize("make", CONTENDERS.values(), ids=CONTENDERS)


def filled(make: Callable[[], Contender], jobs: Sequence[Job] = JOBS) -> Contender:
    """Return a structure with all jobs in it."""
    contender = make()
    contender.fill(jobs)
    return contender


@each
@pytest.mark.parametrize("n", [1, 2, 300])
def test_what_comes_out_is_right(make: Callable[[], Contender], n: int) -> None:
    """Each structure holds all jobs, hands out each once and in its order, and is empty then."""
    contender = filled(make, JOBS[:n])
    assert len(contender) == n
    contender.check(contender.drain(), JOBS[:n])
    assert len(contender) == 0


@each
def test_ticks_with_nothing_due_change_nothing(make: Callable[[], Contender]) -> None:
    """At the times that are measured nothing happens, even where a single job decides."""
    for n in (1, 300):
        contender = filled(make, JOBS[:n])
        happened = contender.tick([contender.clock + number * TICK for number in range(1, comparison.TICKS + 1)])
        assert not any(happened)
        contender.check(contender.drain(), JOBS[:n])


@each
def test_what_is_cancelled_is_gone(make: Callable[[], Contender]) -> None:
    """Half of the jobs are cancelled, and exactly the other half comes out."""
    contender = filled(make)
    contender.cancel(WORKLOAD.shuffled[:150])
    assert len(contender) == 150
    contender.check(contender.drain(), WORKLOAD.shuffled[150:])


def test_aging_is_in_play() -> None:
    """The heap is asked at a time at which its order is not that of the bare priorities."""
    heap, floor = filled(CONTENDERS["heap"]), filled(CONTENDERS["heapq"])
    assert [job.id for job in heap.drain()] != floor.drain()


def test_the_workload_is_the_same_for_all() -> None:
    """A seed gives the same jobs each time: all priorities, times within bounds, and all of them to be cancelled."""
    again = Workload.of(300, seed=7)
    assert [(job.id, job.priority, job.run_at) for job in again.jobs] == [
        (job.id, job.priority, job.run_at) for job in JOBS
    ]
    assert {job.priority for job in JOBS} == {1.0, 2.0, 3.0}
    assert sorted(job.id for job in again.shuffled) == list(range(300))
    assert [job.id for job in again.shuffled] != list(range(300))


# What is wrong is noticed


def _swapped(drained: Any) -> None:
    drained[0], drained[1] = drained[1], drained[0]


def _lost(drained: Any) -> None:
    del drained[-1]


def _doubled(drained: Any) -> None:
    drained.append(drained[-1])


@each
@pytest.mark.parametrize("spoil", [_swapped, _lost, _doubled])
def test_a_wrong_result_is_refused(make: Callable[[], Contender], spoil: Callable[[Any], None]) -> None:
    """Two in the wrong order, one that is missing, and one that comes twice: no structure gets away with it."""
    contender = filled(make)
    drained = contender.drain()
    spoil(drained)
    with pytest.raises(WrongResult, match=contender.who):
        contender.check(drained, JOBS)


FIRST, SECOND = (Job(number, 1.0, 2.0 + number, 0.0) for number in range(2))


@pytest.mark.parametrize(
    ("fired", "text"),
    [
        ([(1.9, 0), (3.0, 1)], r"It fired job 0, due at 2\.0 s, at 1\.9 s\."),
        ([(2.002, 0), (3.0, 1)], r"It fired job 0, due at 2\.0 s, at 2\.002 s\."),
        ([(3.0, 1), (2.0, 0)], r"It fired job 0 at 2\.0 s, after others at 3\.0 s\."),
        ([(2.0, 0)], "It fired job 1 0 times"),
        ([(2.0, 0), (2.0, 0), (3.0, 1)], "It fired job 0 2 times"),
        ([(2.0, 0), (3.0, 1), (3.0, 7)], "It fired job 7, which was not put in"),
    ],
)
def test_a_wheel_must_keep_the_times(fired: list[tuple[float, int]], text: str) -> None:
    """Early, late, out of order, lost, doubled and invented are told apart, with the job and the times."""
    check_times("It", [(2.0, 0), (3.0, 1)], {job.id: job.run_at for job in (FIRST, SECOND)}, TICK)
    with pytest.raises(WrongResult, match=text):
        check_times("It", fired, {job.id: job.run_at for job in (FIRST, SECOND)}, TICK)


def test_a_heap_must_keep_the_order() -> None:
    """What is missing is counted, what is misplaced is named with its place."""
    check_order("It", [2, 1], [2, 1])
    with pytest.raises(WrongResult, match=r"It handed out 1 jobs of 2\."):
        check_order("It", [2], [2, 1])
    with pytest.raises(WrongResult, match=r"It handed out job 1 in place 0, which belongs to job 2\."):
        check_order("It", [1, 2], [2, 1])


_Floor = CONTENDERS["dict"]


class _ForgetsOne(_Floor):
    def cancel(self, jobs: Sequence[Job]) -> None:
        super().cancel(jobs[1:])


class _Hasty(_Floor):
    def tick(self, times: Sequence[float]) -> Sequence[Any]:
        return [*super().tick(times), "something"]


class _Lazy(_Floor):
    def drain(self) -> Sequence[Any]:
        return super().drain()[1:]


@pytest.mark.parametrize(
    ("broken", "text"),
    [
        (_ForgetsOne, "the dict floor kept jobs that were cancelled"),
        (_Hasty, "the dict floor did something at a tick at which nothing is due"),
        (_Lazy, "fired job .* 0 times"),
    ],
)
def test_a_broken_structure_is_not_measured(
    monkeypatch: pytest.MonkeyPatch, broken: Callable[[], Contender], text: str
) -> None:
    """Whatever it is that a structure does wrong, there are no figures of it."""
    monkeypatch.setattr(comparison, "CONTENDERS", {"broken": broken})
    with pytest.raises(WrongResult, match=text):
        compare(20, ["broken"], runs=1)


# Figures


def test_a_comparison_has_every_figure() -> None:
    """All algorithms are measured in every respect, one after the other in each run, and told of as they go."""
    told: list[str] = []
    found = compare(50, runs=2, progress=told.append)
    assert (found.n, found.runs, list(found.figures)) == (50, 2, list(CONTENDERS))
    assert all(getattr(figures, name) > 0 for figures in found.figures.values() for name in MEASURES)
    assert told[:4] == [f"50 jobs, {name}, run 1 of 2" for name in CONTENDERS]
    assert told[-4:] == [f"50 jobs, {name}, memory" for name in CONTENDERS]
    assert gc.get_freeze_count() == 0


def test_a_ratio_is_of_one_measure() -> None:
    """How many times as much one costs as the other."""
    found = Comparison(1, 1, 1, {"heap": Figures(6.0, 1, 1, 1, 1, 1), "wheel": Figures(2.0, 1, 1, 1, 1, 1)})
    assert found.ratio("insert_ms", "heap", "wheel") == 3.0
    assert found.ratio("cancel_ms", "heap", "wheel") == 1.0


def test_memory_is_that_of_the_structure() -> None:
    """A heap of bare tuples takes a tuple of four and a pointer for each entry, and the spare room of a list."""
    floor = compare(1000, ["heapq"], runs=1).figures["heapq"].bytes_per_entry
    entry = sys.getsizeof((1.0, 1.0, 1.0, 1)) + 8
    assert entry <= floor <= entry + 32


def test_each_structure_has_its_floor() -> None:
    """Both are among what is measured."""
    assert tuple(FLOORS) == ALGORITHMS
    assert set(CONTENDERS) == {*FLOORS, *FLOORS.values()}


def test_large_sizes_have_fewer_runs() -> None:
    """There are always at least three, so that there is a median."""
    assert [runs_for(n) for n in (1, 10_000, 100_000, 1_000_000)] == [9, 9, 5, 3]


@pytest.mark.parametrize(
    ("n", "algorithms", "runs", "text"),
    [
        (0, ["heap"], 1, "The size is 0 and the number of runs 1: give at least 1 of each"),
        (5, ["heap"], 0, "The size is 5 and the number of runs 0"),
        (5, ["heap", "tree"], 1, "'tree' is no algorithm: give some of heap, wheel, heapq, dict"),
    ],
)
def test_what_cannot_be_measured_is_refused(n: int, algorithms: list[str], runs: int, text: str) -> None:
    """The error names the value and what there is."""
    with pytest.raises(ValueError, match=text):
        compare(n, algorithms, runs=runs)


def test_the_command_prints_json() -> None:
    """Another process gets the figures of what it asked for, and nothing else."""
    command = [sys.executable, "-m", "scheduling.comparison", "20", "wheel", "heap", "--runs", "2"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found = json.loads(run.stdout)
    assert run.stderr == ""
    assert (found["n"], found["runs"], list(found["figures"])) == (20, 2, ["wheel", "heap"])
    assert tuple(found["figures"]["heap"]) == MEASURES
