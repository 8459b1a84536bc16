"""What holding jobs costs: work that does not grow with the heap, and memory that does not grow with time."""

import random
import tracemalloc
import uuid
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from scheduling import Aging, ReadyHeap
from tests.scheduling.support import Job, drained, push


def test_rescore_between_changes_costs_the_same_for_any_number(lines_of: Callable[..., int]) -> None:
    """When nothing can have changed, ten thousand entries of a thousand priorities cost what one does."""
    costs = set()
    for entries in (1, 10_000):
        heap: ReadyHeap[Job] = ReadyHeap()
        for number in range(entries):
            push(heap, number, priority=2.0 + number % 1000)
        costs.add(lines_of(lambda heap=heap: heap.rescore(1.0)))
        assert heap.rescore(30.0)
        costs.add(lines_of(lambda heap=heap: heap.rescore(31.0)))
    assert len(costs) == 1


def test_what_is_gone_does_not_count_as_a_change() -> None:
    """The step of a job that was popped before it re-orders nothing."""
    heap: ReadyHeap[Job] = ReadyHeap()
    push(heap, 1, priority=2.0)
    heap.pop()
    push(heap, 2, priority=1.0)
    assert not heap.rescore(30.0)


def test_discard_costs_the_same_for_any_number(lines_of: Callable[..., int]) -> None:
    """Discarding the first or the last of ten thousand costs what discarding one of ten does."""
    costs = set()
    for entries in (10, 10_000):
        heap: ReadyHeap[Job] = ReadyHeap()
        for number in range(entries):
            push(heap, number, run_at=float(number))
        costs |= {lines_of(lambda heap=heap, end=end: heap.discard(end)) for end in (0, entries - 1)}
    assert len(costs) == 1


def test_discarding_everything_costs_in_proportion(lines_of: Callable[..., int]) -> None:
    """The sweeps are paid for by the discards: ten times the entries take ten times the work, no more."""

    def work(entries: int) -> int:
        heap: ReadyHeap[Job] = ReadyHeap()
        for number in range(entries):
            push(heap, number)
        return lines_of(lambda: [heap.discard(number) for number in range(entries)])

    assert work(5000) < 12 * work(500)


class Watch:
    """Makes jobs and says how many of them are still referenced."""

    def __init__(self) -> None:
        self.references: list[weakref.ref[Job]] = []

    def push(self, heap: ReadyHeap[Job], number: int, run_at: float) -> None:
        """Push a job that is watched."""
        self.references.append(weakref.ref(push(heap, number, run_at=run_at)))

    def count(self) -> int:
        """Return how many jobs are left."""
        self.references = [reference for reference in self.references if reference() is not None]
        return len(self.references)


@pytest.mark.parametrize("share", [1, 10, 1000])
def test_garbage_never_outnumbers_what_is_alive(share: int) -> None:
    """Discarded, moved and popped items are let go: at most as many linger as are alive, whatever is due at once."""
    heap: ReadyHeap[Job] = ReadyHeap()
    watch = Watch()
    for number in range(1000):
        watch.push(heap, number, float(number // share))
    for number in range(900, 0, -1):
        heap.discard(number)
        assert watch.count() <= 2 * len(heap)
    for _ in range(50):
        heap.pop()
        assert watch.count() <= 2 * len(heap)
    for move in range(1000):
        watch.push(heap, 999, float(-(move // share)))
        assert watch.count() <= 2 * len(heap)
    heap.drain()
    assert watch.count() == 0


@pytest.mark.parametrize("share", [1, 10, 1000])
def test_popping_what_is_alive_sweeps_what_is_not(share: int) -> None:
    """Garbage at the far end, which pops alone would never reach, is let go as the living get fewer."""
    heap: ReadyHeap[Job] = ReadyHeap()
    watch = Watch()
    for number in range(1000):
        watch.push(heap, number, float(number // share))
    for number in range(999, 500, -1):
        heap.discard(number)
    while heap:
        heap.pop()
        assert watch.count() <= 2 * len(heap)


def test_coming_and_going_at_one_time_leaves_nothing_behind() -> None:
    """A job that is discarded and pushed again thousands of times takes no more memory than once."""
    heap: ReadyHeap[Job] = ReadyHeap()
    jobs = [push(heap, number, run_at=float(number // 3)) for number in range(9)]
    tracemalloc.start()
    for number in range(5000):
        heap.discard(number % 9)
        heap.push(jobs[number % 9], 0.0)
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert grown < 10_000
    assert drained(heap) == list(range(9))


@pytest.mark.parametrize("share", [1, 1000])
def test_garbage_that_has_come_up_is_not_swept_again(lines_of: Callable[..., int], share: int) -> None:
    """After a pop has passed the garbage, the next discards are cheap again."""
    heap: ReadyHeap[Job] = ReadyHeap()
    for number in range(1000):
        push(heap, number, run_at=float(number // share))
    cost = lines_of(lambda: heap.discard(0))
    for number in range(1, 400):
        heap.discard(number)
    assert heap.pop().id == 400
    assert {lines_of(lambda number=number: heap.discard(number)) for number in range(401, 600)} == {cost}


def test_a_job_that_is_there_already_costs_nothing(lines_of: Callable[..., int]) -> None:
    """Pushing the very same object again makes no garbage, so that none is ever swept."""
    heap: ReadyHeap[Job] = ReadyHeap()
    jobs = [push(heap, number) for number in range(10)]
    assert len({lines_of(lambda job=job: heap.push(job, 0.0)) for _ in range(10) for job in jobs}) == 1


def test_a_level_that_is_gone_leaves_nothing_behind() -> None:
    """A stream of jobs that each have a priority of their own takes no more memory than one of them."""
    heap: ReadyHeap[Job] = ReadyHeap()
    push(heap, 0, priority=1.0)
    tracemalloc.start()
    for number in range(1, 3000):
        push(heap, number, priority=1.0 + number / 1000, run_at=-1.0)
        heap.pop() if number % 2 else heap.discard(number)
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(heap) == 1
    assert grown < 10_000


@pytest.mark.parametrize("make", [int, lambda number: uuid.UUID(int=number**9)])
@pytest.mark.parametrize("run_ats", [1, 10_000])
@pytest.mark.parametrize("priorities", [1, 3])
def test_an_entry_takes_little_memory(make: Callable[[int], Any], run_ats: int, priorities: int) -> None:
    """Ten thousand entries take at most 72 bytes each beyond the jobs, also once the first has been popped."""
    jobs = [
        Job(make(number), 1.0 + number % priorities, float(number % run_ats), float(number % run_ats))
        for number in range(10_000)
    ]
    random.Random(1).shuffle(jobs)
    heap: ReadyHeap[Job] = ReadyHeap()
    tracemalloc.start()
    for job in jobs:
        heap.push(job, 0.0)
    grown, _ = tracemalloc.get_traced_memory()
    heap.pop()
    popped, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert max(grown, popped) / len(jobs) <= 72


def test_jobs_of_one_time_are_sorted_when_the_first_is_gone(lines_of: Callable[..., int]) -> None:
    """With a thousand others due at the same time, a push or a pop costs what it does with ten; so does a rescoring."""

    def costs(entries: int) -> list[int]:
        heap: ReadyHeap[Job] = ReadyHeap()
        for number in range(entries):
            push(heap, number)
        before = lines_of(lambda: push(heap, entries))
        assert heap.rescore(30.0)
        assert lines_of(lambda: push(heap, entries + 1)) == before
        heap.pop()
        return [before, lines_of(lambda: push(heap, entries + 2)), lines_of(heap.pop)]

    assert costs(1000) == costs(10)


@pytest.mark.parametrize(("run_ats", "now"), [(100, 0.0), (1, 0.0), (1, 45.0)])
def test_nobody_is_scored_whose_score_is_known(run_ats: int, now: float) -> None:
    """A pop asks for no effective priority where the next job has not aged, or is due at the same time."""

    class CountingAging(Aging):
        asked = 0

        def outlook(self, priority: float, waited: float) -> tuple[float, float]:
            CountingAging.asked += 1
            return super().outlook(priority, waited)

    heap: ReadyHeap[Job] = ReadyHeap(CountingAging())
    for number in range(100):
        push(heap, number, now, priority=3.0, run_at=float(number % run_ats))
    assert CountingAging.asked == 1
    heap.drain()
    assert CountingAging.asked == 1


@pytest.mark.parametrize("run_ats", [1, 100])
def test_a_uuid_costs_what_an_integer_costs(lines_of: Callable[..., int], run_ats: int) -> None:
    """No code of UUID, which is Python code, is run to hash or compare one."""

    def work(make: Callable[[int], Any]) -> int:
        heap: ReadyHeap[Job] = ReadyHeap()
        jobs = [Job(make(number * 37 % 101), run_at=float(number % run_ats)) for number in range(100)]

        def hold() -> None:
            for job in jobs:
                heap.push(job, 0.0)
            for job in jobs[::3]:
                heap.discard(job.id)
                assert job.id not in heap
                assert heap.get(job.id) is None
            for _ in range(20):
                heap.push(heap.pop(), 0.0)
            heap.drain()

        return lines_of(hold)

    assert work(lambda number: uuid.UUID(int=number)) == work(int)
