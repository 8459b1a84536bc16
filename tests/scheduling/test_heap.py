"""The order in which held jobs start: urgency, age, ties and aging."""

import random
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from scheduling import FAST, SLOW, Aging, ReadyHeap
from tests.scheduling.support import Incomparable, push


def test_the_smaller_number_goes_first() -> None:
    """High goes before Medium and Medium before Low, whatever the order of arrival."""
    heap: ReadyHeap[str] = ReadyHeap()
    for name, priority in [("low", 3.0), ("high", 1.0), ("between", 2.5), ("medium", 2.0)]:
        push(heap, name, priority=priority)
    assert heap.drain() == ["high", "medium", "between", "low"]


def test_ties_are_settled_by_due_time_then_creation_then_id() -> None:
    """Among equally urgent jobs the one due first goes first, then the one made first, then the lesser id."""
    heap: ReadyHeap[int] = ReadyHeap()
    push(heap, 4, run_at=1.0, created_at=1.0)
    push(heap, 3, run_at=1.0, created_at=1.0)
    push(heap, 1, run_at=2.0, created_at=0.0)
    push(heap, 2, run_at=1.0, created_at=2.0)
    push(heap, 5, run_at=0.0, created_at=9.0)
    assert heap.drain() == [5, 3, 4, 2, 1]


def test_equal_jobs_with_dict_payloads_go_first_in_first_out() -> None:
    """A hundred equal jobs keep their order around one of another priority, and no payload is compared."""
    heap: ReadyHeap[dict[str, int]] = ReadyHeap()
    for number in range(100):
        push(heap, number, {"number": number})
        if number == 50:
            push(heap, 1000, {"number": 1000}, priority=1.0)
    assert [payload["number"] for payload in heap.drain()] == [1000, *range(100)]


def test_an_item_is_never_compared() -> None:
    """Not even a job that is dropped and pushed again with the very same values gets its item compared."""
    heap: ReadyHeap[Incomparable] = ReadyHeap()
    for number in range(20):
        push(heap, number, Incomparable())
    for second in range(0, 100, 20):
        heap.discard(10)
        push(heap, 10, Incomparable())
        push(heap, 10, Incomparable())
        heap.rescore(float(second))
    assert len(heap.drain()) == 20


def test_pop_and_peek_agree_and_an_empty_heap_says_so() -> None:
    """Peek shows what pop removes, and both explain themselves when there is nothing."""
    heap: ReadyHeap[str] = ReadyHeap()
    push(heap, "only")
    assert (heap.peek(), len(heap), bool(heap)) == ("only", 1, True)
    assert (heap.pop(), len(heap), bool(heap)) == ("only", 0, False)
    assert heap.drain() == []
    for ask in (heap.pop, heap.peek):
        with pytest.raises(IndexError, match=r"^ReadyHeap is empty: ask `if heap` before peek\(\)"):
            ask()


@pytest.mark.parametrize("make", [uuid.uuid4, lambda: random.randrange(10**9), lambda: uuid.uuid4().hex])
def test_ids_may_be_uuids_integers_or_strings(make: Callable[[], Any]) -> None:
    """Whatever kind of id a heap holds, ties follow the order of the ids, and each is found and discarded."""
    heap: ReadyHeap[Any] = ReadyHeap()
    ids = [make() for _ in range(50)]
    for each in ids:
        push(heap, each)
    assert ids[7] in heap
    assert heap.discard(ids[7])
    assert ids[7] not in heap
    assert heap.drain() == sorted(set(ids) - {ids[7]})


def test_a_present_id_is_moved() -> None:
    """Pushing an id again leaves one entry: the new item, at the new place."""
    heap: ReadyHeap[str] = ReadyHeap()
    push(heap, 1, "old", priority=1.0)
    push(heap, 2, "other")
    push(heap, 1, "later", priority=3.0)
    assert (len(heap), heap.peek()) == (2, "other")
    push(heap, 1, "sooner", priority=2.0, run_at=-1.0)
    assert heap.drain() == ["sooner", "other"]


def test_an_item_can_be_looked_at_by_its_id() -> None:
    """`get` returns the item and leaves it in its place; None when it was never there, or has gone."""
    heap: ReadyHeap[str] = ReadyHeap()
    id_ = uuid.uuid4()
    push(heap, id_, "item")
    assert (heap.get(id_), heap.get(uuid.uuid4())) == ("item", None)
    assert heap.pop() == "item"
    assert heap.get(id_) is None


def test_discard_tells_whether_there_was_one() -> None:
    """A discarded entry is gone at once; discarding it again, or one that was popped, finds nothing."""
    heap: ReadyHeap[int] = ReadyHeap()
    for number in range(4):
        push(heap, number)
    assert [heap.discard(0), heap.discard(0), heap.discard(9)] == [True, False, False]
    assert (0 in heap, len(heap), heap.pop(), heap.discard(1)) == (False, 3, 1, False)
    push(heap, 0, run_at=5.0)
    assert heap.drain() == [2, 3, 0]


def test_low_overtakes_fresh_medium_once_it_has_aged() -> None:
    """A Low job that has waited half a minute goes before a Medium one that is due later."""
    heap: ReadyHeap[str] = ReadyHeap()
    push(heap, 1, "low", priority=3.0)
    push(heap, 2, "medium", run_at=20.0, now=20.0)
    assert (heap.rescore(29.75), heap.peek()) == (False, "medium")
    assert (heap.rescore(30.0), heap.peek()) == (True, "low")


def test_entries_are_compared_as_of_one_moment() -> None:
    """A push moves the clock for all: what has aged meanwhile is not overtaken by what arrives now."""
    heap: ReadyHeap[str] = ReadyHeap()
    push(heap, 1, "aged", priority=3.0, run_at=0.0, now=0.0)
    push(heap, 2, "fresh", priority=2.0, run_at=60.0, now=60.0)
    assert heap.drain() == ["aged", "fresh"]


def test_a_retry_keeps_its_age() -> None:
    """A job that is due since long ago is scored by its wait as soon as it is pushed."""
    heap: ReadyHeap[str] = ReadyHeap()
    push(heap, 1, "fresh high", priority=1.0, run_at=100.0, now=100.0)
    push(heap, 2, "old low", priority=3.0, run_at=0.0, now=100.0)
    assert heap.drain() == ["old low", "fresh high"]


def test_rescore_works_only_when_something_can_have_changed() -> None:
    """Between two steps of aging there is nothing to do, nor when the clock goes back, nor at the top."""
    heap: ReadyHeap[str] = ReadyHeap()
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
    heap: ReadyHeap[str] = ReadyHeap()
    push(heap, 1, "low", priority=3.0, now=60.0)
    heap.rescore(-1000.0)
    push(heap, 2, "high", priority=1.0, run_at=1.0, now=-1000.0)
    assert heap.drain() == ["low", "high"]


def test_without_aging_nothing_ever_changes() -> None:
    """A decrement of 0 keeps High before Low for good."""
    heap: ReadyHeap[str] = ReadyHeap(Aging(decrement=0))
    push(heap, 1, "low", priority=3.0)
    push(heap, 2, "high", priority=1.0, run_at=1e9, now=1e9)
    assert not heap.rescore(2e9)
    assert heap.drain() == ["high", "low"]


@pytest.mark.parametrize("aging", [FAST, SLOW])
@pytest.mark.parametrize("priority", [2.0, 2.5, 3.0])
def test_nobody_starves_under_constant_high_load(aging: Aging, priority: float) -> None:
    """Under a load of High jobs that never lets up, a lesser job starts by the bound of its priority."""
    heap: ReadyHeap[str] = ReadyHeap(aging)
    push(heap, 0, "patient", priority=priority)
    for second in range(1, 2000):
        for number in range(2):
            push(heap, 2 * second + number, "high", priority=1.0, run_at=float(second), now=float(second))
        if heap.pop() == "patient":
            break
    assert second == aging.bound(priority)


def test_rescued_and_retried_high_jobs_start_next_in_a_stream_of_low_ones() -> None:
    """A job that comes back goes before the fresh jobs of a lower priority, however many they are."""
    heap: ReadyHeap[str] = ReadyHeap()
    for number in range(200):
        push(heap, number, "low", priority=3.0, run_at=number / 200, now=1.0)
    push(heap, 1001, "retried", priority=1.0, run_at=1.0, created_at=-50.0, now=1.0)
    push(heap, 1000, "rescued", priority=1.0, run_at=0.5, created_at=0.0, now=1.0)
    for number in range(200, 400):
        push(heap, number, "low", priority=3.0, run_at=number / 200, now=2.0)
    assert [heap.pop() for _ in range(3)] == ["rescued", "retried", "low"]
