"""What holding jobs costs: work that does not grow with the heap, and memory that does not grow with time."""

import gc
import tracemalloc
import weakref
from collections.abc import Callable

from scheduling import ReadyHeap
from tests.scheduling.support import push


def test_rescore_between_changes_costs_the_same_for_any_number(lines_of: Callable[..., int]) -> None:
    """When nothing can have changed, ten thousand entries of a thousand priorities cost what one does."""
    costs = set()
    for entries in (1, 10_000):
        heap: ReadyHeap[int] = ReadyHeap()
        for number in range(entries):
            push(heap, number, priority=2.0 + number % 1000)
        costs.add(lines_of(lambda heap=heap: heap.rescore(1.0)))
        assert heap.rescore(30.0)
        costs.add(lines_of(lambda heap=heap: heap.rescore(31.0)))
    assert len(costs) == 1


def test_what_is_gone_does_not_count_as_a_change() -> None:
    """The step of a job that was popped before it re-orders nothing."""
    heap: ReadyHeap[str] = ReadyHeap()
    push(heap, 1, priority=2.0)
    heap.pop()
    push(heap, 2, priority=1.0)
    assert not heap.rescore(30.0)


def test_discard_costs_the_same_for_any_number(lines_of: Callable[..., int]) -> None:
    """Discarding the first or the last of ten thousand costs what discarding one of ten does."""
    costs = set()
    for entries in (10, 10_000):
        heap: ReadyHeap[int] = ReadyHeap()
        for number in range(entries):
            push(heap, number, run_at=float(number))
        costs |= {lines_of(lambda heap=heap, end=end: heap.discard(end)) for end in (0, entries - 1)}
    assert len(costs) == 1


def test_discarding_everything_costs_in_proportion(lines_of: Callable[..., int]) -> None:
    """The sweeps are paid for by the discards: ten times the entries take ten times the work, no more."""

    def work(entries: int) -> int:
        heap: ReadyHeap[int] = ReadyHeap()
        for number in range(entries):
            push(heap, number)
        return lines_of(lambda: [heap.discard(number) for number in range(entries)])

    assert work(5000) < 12 * work(500)


def test_garbage_never_outnumbers_what_is_alive() -> None:
    """Discarded, moved and popped items are let go: at most as many linger as are alive."""

    class Item:
        pass

    heap: ReadyHeap[Item] = ReadyHeap()
    seen: weakref.WeakSet[Item] = weakref.WeakSet()

    def new() -> Item:
        item = Item()
        seen.add(item)
        return item

    for number in range(1000):
        push(heap, number, new(), run_at=float(number))
    for number in range(900, 0, -1):
        heap.discard(number)
        gc.collect(0)
        assert len(seen) <= 2 * len(heap)
    for _ in range(50):
        heap.pop()
        assert len(seen) <= 2 * len(heap)
    for move in range(1000):
        push(heap, 999, new(), run_at=float(-move))
        assert len(seen) <= 2 * len(heap)
    heap.drain()
    assert len(seen) == 0


def test_popping_what_is_alive_sweeps_what_is_not() -> None:
    """Garbage at the far end, which pops alone would never reach, is let go as the living get fewer."""

    class Item:
        pass

    heap: ReadyHeap[Item] = ReadyHeap()
    seen: weakref.WeakSet[Item] = weakref.WeakSet()
    for number in range(1000):
        item = Item()
        seen.add(item)
        push(heap, number, item, run_at=float(number))
    del item
    for number in range(999, 500, -1):
        heap.discard(number)
    while heap:
        heap.pop()
        assert len(seen) <= 2 * len(heap)


def test_garbage_that_has_come_up_is_not_swept_again(lines_of: Callable[..., int]) -> None:
    """After a pop has passed the garbage, the next discards are cheap again."""
    heap: ReadyHeap[int] = ReadyHeap()
    for number in range(1000):
        push(heap, number, run_at=float(number))
    cost = lines_of(lambda: heap.discard(0))
    for number in range(1, 400):
        heap.discard(number)
    assert heap.pop() == 400
    assert {lines_of(lambda number=number: heap.discard(number)) for number in range(401, 600)} == {cost}


def test_a_level_that_is_gone_leaves_nothing_behind() -> None:
    """A stream of jobs that each have a priority of their own takes no more memory than one of them."""
    heap: ReadyHeap[None] = ReadyHeap()
    push(heap, 0, priority=1.0)
    tracemalloc.start()
    for number in range(1, 3000):
        push(heap, number, priority=1.0 + number / 1000, run_at=-1.0)
        heap.pop() if number % 2 else heap.discard(number)
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(heap) == 1
    assert grown < 10_000


def test_an_entry_takes_little_memory() -> None:
    """Ten thousand entries take at most 120 bytes each beyond their ids, times and items."""
    rows = [(number, float(number), 1.0 + number % 3) for number in range(10_000)]
    heap: ReadyHeap[None] = ReadyHeap()
    tracemalloc.start()
    for number, time, priority in rows:
        push(heap, number, None, run_at=time, created_at=time, priority=priority)
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert grown / len(rows) <= 120
