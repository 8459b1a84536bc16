"""The order in which held jobs start: urgency, age, ties and aging."""

import itertools
import random
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from scheduling import FAST, SLOW, Aging, ReadyHeap
from tests.scheduling.support import Job, drained, push


def test_the_smaller_number_goes_first() -> None:
    """High goes before Medium and Medium before Low, whatever the order of arrival."""
    heap: ReadyHeap[Job] = ReadyHeap()
    for name, priority in [("low", 3.0), ("high", 1.0), ("between", 2.5), ("medium", 2.0)]:
        push(heap, name, priority=priority)
    assert drained(heap) == ["high", "medium", "between", "low"]


def test_ties_are_settled_by_due_time_then_creation_then_id() -> None:
    """Among equally urgent jobs the one due first goes first, then the one made first, then the lesser id."""
    heap: ReadyHeap[Job] = ReadyHeap()
    push(heap, 4, run_at=1.0, created_at=1.0)
    push(heap, 3, run_at=1.0, created_at=1.0)
    push(heap, 1, run_at=2.0, created_at=0.0)
    push(heap, 2, run_at=1.0, created_at=2.0)
    push(heap, 5, run_at=0.0, created_at=9.0)
    assert drained(heap) == [5, 3, 4, 2, 1]


def test_ties_between_priorities_are_settled_alike() -> None:
    """Jobs of several priorities that have aged to the same urgency, and are due at once, go by creation, then id."""
    for order in itertools.permutations([(4, 1.0, 5.0), (1, 2.0, 5.0), (2, 3.0, 5.0), (3, 3.0, 4.0), (0, 1.0, 6.0)]):
        heap: ReadyHeap[Job] = ReadyHeap()
        for number, priority, created_at in order:
            push(heap, number, now=100.0, priority=priority, created_at=created_at)
        assert drained(heap) == [3, 1, 2, 4, 0]


def test_equal_jobs_go_first_in_first_out() -> None:
    """A hundred equal jobs keep their order around one of another priority, and no job is compared."""
    heap: ReadyHeap[Job] = ReadyHeap()
    for number in range(100):
        push(heap, number)
        if number == 50:
            push(heap, 1000, priority=1.0)
    assert drained(heap) == [1000, *range(100)]


def test_jobs_of_one_time_may_come_at_any_time() -> None:
    """Before and after the first of them was looked at, sooner or later made: the order is the same."""
    numbers = list(range(60))
    random.Random(1).shuffle(numbers)
    for looked_at in (0, 1, 2, 30, 60):
        heap: ReadyHeap[Job] = ReadyHeap()
        for count, number in enumerate(numbers):
            if count == looked_at:
                for _ in range(2):  # the second pop finds the others sorted
                    push(heap, -1, created_at=-1.0)
                    assert heap.pop().id == -1
            push(heap, number, created_at=float(number // 4))
        assert drained(heap) == sorted(numbers)


@pytest.mark.parametrize("zero", [0, 0.0, -0.0])
def test_equal_times_are_one_time(zero: float) -> None:
    """An integer and a negative zero are what they are equal to."""
    heap: ReadyHeap[Job] = ReadyHeap()
    push(heap, 2, run_at=0.0)
    push(heap, 1, run_at=zero)
    push(heap, 3, run_at=zero, created_at=-1)
    push(heap, 0, run_at=zero, priority=2)
    push(heap, 4, run_at=1)
    push(heap, 5, run_at=1.0)
    assert heap.discard(2)
    assert drained(heap) == [3, 0, 1, 4, 5]


def test_an_item_is_never_compared() -> None:
    """Not even a job that is dropped and pushed again with the very same values gets its item compared."""
    heap: ReadyHeap[Job] = ReadyHeap()
    for number in range(20):
        push(heap, number)
    for second in range(0, 100, 20):
        heap.discard(10)
        push(heap, 10)
        latest = push(heap, 10)
        heap.rescore(float(second))
    jobs = heap.drain()
    assert [job.id for job in jobs] == list(range(20))
    assert jobs[10] is latest


def test_pop_and_peek_agree_and_an_empty_heap_says_so() -> None:
    """Peek shows what pop removes, and both explain themselves when there is nothing."""
    heap: ReadyHeap[Job] = ReadyHeap()
    only = push(heap, "only")
    assert heap.peek() is only
    assert (len(heap), bool(heap)) == (1, True)
    assert heap.pop() is only
    assert (len(heap), bool(heap)) == (0, False)
    assert heap.drain() == []
    for ask in (heap.pop, heap.peek):
        with pytest.raises(IndexError, match=r"^ReadyHeap is empty: ask `if heap` before peek\(\)"):
            ask()


@pytest.mark.parametrize("run_ats", [1, 7, 50])
@pytest.mark.parametrize("make", [uuid.uuid4, lambda: random.randrange(10**9), lambda: uuid.uuid4().hex])
def test_ids_may_be_uuids_integers_or_strings(make: Callable[[], Any], run_ats: int) -> None:
    """Whatever kind of id a heap holds, ties follow the order of the ids, and each is found and discarded."""
    heap: ReadyHeap[Job] = ReadyHeap()
    ids = [make() for _ in range(50)]
    due = {each: float(number % run_ats) for number, each in enumerate(ids)}
    for each in ids:
        push(heap, each, run_at=due[each])
    expected = sorted(due, key=lambda each: (due[each], each))
    assert heap.pop().id == expected[0]
    assert expected[7] in heap
    assert heap.discard(expected[7])
    assert expected[7] not in heap
    push(heap, expected[0], run_at=due[expected[0]])
    push(heap, expected[9], run_at=due[expected[9]])
    assert drained(heap) == [*expected[:7], *expected[8:]]


def test_a_present_id_is_moved() -> None:
    """Pushing an id again leaves one entry: the new item, at the new place."""
    heap: ReadyHeap[Job] = ReadyHeap()
    push(heap, 1, priority=1.0)
    other = push(heap, 2)
    later = push(heap, 1, priority=3.0)
    assert heap.peek() is other
    assert heap.get(1) is later
    assert len(heap) == 2
    sooner = push(heap, 1, priority=2.0, run_at=-1.0)
    assert [heap.pop() is each for each in (sooner, other)] == [True, True]
    assert not heap


def test_the_very_same_job_may_be_pushed_again() -> None:
    """A job that is there already stays as it is; one that was discarded or popped is back in its place."""
    heap: ReadyHeap[Job] = ReadyHeap()
    jobs = [push(heap, number, run_at=float(number // 3)) for number in range(9)]
    for job in jobs:
        heap.push(job, 0.0)
    assert len(heap) == 9
    for job in jobs[::2]:
        assert heap.discard(job.id)
        heap.push(job, 0.0)
        heap.push(job, 0.0)
    assert len(heap) == 9
    heap.push(heap.pop(), 0.0)
    assert drained(heap) == list(range(9))


@pytest.mark.parametrize("priority", [1.0, 2.0, 3.0])
@pytest.mark.parametrize("others", [0, 1, 5])
def test_a_time_from_which_all_have_gone_can_be_pushed_to_again(others: int, priority: float) -> None:
    """What is left of discarded jobs neither hides nor doubles those that come at the same time, of any priority."""
    heap: ReadyHeap[Job] = ReadyHeap()
    for number in range(20):
        push(heap, 100 + number, run_at=9.0, priority=priority)
    for _ in range(3):
        for number in range(others + 1):
            push(heap, number, run_at=5.0)
        assert heap.peek().run_at == (5.0 if priority >= 2.0 else 9.0)
        for number in range(others + 1):
            heap.discard(number)
    push(heap, 1, run_at=5.0, priority=priority)
    push(heap, 0, run_at=5.0, priority=priority)
    assert drained(heap) == [0, 1, *range(100, 120)]


def test_garbage_of_one_priority_hides_nothing_of_another() -> None:
    """Where a job was discarded, one of another priority that is due at the same time is not taken for it."""
    heap: ReadyHeap[Job] = ReadyHeap()
    push(heap, 1, priority=1.0)
    push(heap, 2, priority=1.0, run_at=1.0)
    push(heap, 9, priority=1.0, run_at=2.0)
    heap.discard(1)
    push(heap, 3, priority=3.0)
    push(heap, 4, priority=2.0)
    push(heap, 5, priority=1.0)
    assert drained(heap) == [5, 2, 9, 4, 3]


def test_an_item_can_be_looked_at_by_its_id() -> None:
    """`get` returns the item and leaves it in its place; None when it was never there, or has gone."""
    heap: ReadyHeap[Job] = ReadyHeap()
    id_ = uuid.uuid4()
    job = push(heap, id_)
    assert heap.get(id_) is job
    assert heap.get(uuid.uuid4()) is None
    assert heap.pop() is job
    assert heap.get(id_) is None


def test_discard_tells_whether_there_was_one() -> None:
    """A discarded entry is gone at once; discarding it again, or one that was popped, finds nothing."""
    heap: ReadyHeap[Job] = ReadyHeap()
    for number in range(4):
        push(heap, number)
    assert [heap.discard(0), heap.discard(0), heap.discard(9)] == [True, False, False]
    assert (0 in heap, len(heap), heap.pop().id, heap.discard(1)) == (False, 3, 1, False)
    push(heap, 0, run_at=5.0)
    assert drained(heap) == [2, 3, 0]


def test_low_overtakes_fresh_medium_once_it_has_aged() -> None:
    """A Low job that has waited half a minute goes before a Medium one that is due later."""
    heap: ReadyHeap[Job] = ReadyHeap()
    push(heap, "low", priority=3.0)
    push(heap, "medium", run_at=20.0, now=20.0)
    assert (heap.rescore(29.75), heap.peek().id) == (False, "medium")
    assert (heap.rescore(30.0), heap.peek().id) == (True, "low")


def test_entries_are_compared_as_of_one_moment() -> None:
    """A push moves the clock for all: what has aged meanwhile is not overtaken by what arrives now."""
    heap: ReadyHeap[Job] = ReadyHeap()
    push(heap, "aged", priority=3.0, run_at=0.0, now=0.0)
    push(heap, "fresh", priority=2.0, run_at=60.0, now=60.0)
    assert drained(heap) == ["aged", "fresh"]


def test_a_retry_keeps_its_age() -> None:
    """A job that is due since long ago is scored by its wait as soon as it is pushed."""
    heap: ReadyHeap[Job] = ReadyHeap()
    push(heap, "fresh high", priority=1.0, run_at=100.0, now=100.0)
    push(heap, "old low", priority=3.0, run_at=0.0, now=100.0)
    assert drained(heap) == ["old low", "fresh high"]


def test_rescore_works_only_when_something_can_have_changed() -> None:
    """Between two steps of aging there is nothing to do, nor when the clock goes back, nor at the top."""
    heap: ReadyHeap[Job] = ReadyHeap()
    assert not heap.rescore(0.0)
    push(heap, 1, priority=3.0)
    assert [heap.rescore(now) for now in (0.0, 29.75, 30.0, 30.0, 59.75, 60.0)] == [
        False,
        False,
        True,
        False,
        False,
        True,
    ]
    assert [heap.rescore(now) for now in (10.0, 90.0, 1e9)] == [False, False, False]


def test_going_back_in_time_changes_nothing() -> None:
    """A clock that jumps back, in rescore or in push, takes no urgency away."""
    heap: ReadyHeap[Job] = ReadyHeap()
    push(heap, "low", priority=3.0, now=60.0)
    heap.rescore(-1000.0)
    push(heap, "high", priority=1.0, run_at=1.0, now=-1000.0)
    assert drained(heap) == ["low", "high"]


def test_without_aging_nothing_ever_changes() -> None:
    """A decrement of 0 keeps High before Low for good."""
    heap: ReadyHeap[Job] = ReadyHeap(Aging(decrement=0))
    push(heap, "low", priority=3.0)
    push(heap, "high", priority=1.0, run_at=1e9, now=1e9)
    assert not heap.rescore(2e9)
    assert drained(heap) == ["high", "low"]


@pytest.mark.parametrize("aging", [FAST, SLOW])
@pytest.mark.parametrize("priority", [2.0, 2.5, 3.0])
def test_nobody_starves_under_constant_high_load(aging: Aging, priority: float) -> None:
    """Under a load of High jobs that never lets up, a lesser job starts by the bound of its priority."""
    heap: ReadyHeap[Job] = ReadyHeap(aging)
    push(heap, "patient", priority=priority)
    for second in range(1, 2000):
        for number in range(2):
            push(heap, f"high {number} of {second}", priority=1.0, run_at=float(second), now=float(second))
        if heap.pop().id == "patient":
            break
    assert second == aging.bound(priority)


def test_rescued_and_retried_high_jobs_start_next_in_a_stream_of_low_ones() -> None:
    """A job that comes back goes before the fresh jobs of a lower priority, however many they are."""
    heap: ReadyHeap[Job] = ReadyHeap()
    for number in range(200):
        push(heap, f"low {number}", priority=3.0, run_at=number / 200, now=1.0)
    push(heap, "retried", priority=1.0, run_at=1.0, created_at=-50.0, now=1.0)
    push(heap, "rescued", priority=1.0, run_at=0.5, created_at=0.0, now=1.0)
    for number in range(200, 400):
        push(heap, f"low {number}", priority=3.0, run_at=number / 200, now=2.0)
    assert [heap.pop().id for _ in range(3)] == ["rescued", "retried", "low 0"]
