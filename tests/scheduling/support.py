"""What the tests of scheduling share: heaps and wheels with ordinary values, and items nobody may look at."""

from typing import Any

from scheduling import ReadyHeap, TimingWheel


class Incomparable:
    """An item that must never be looked at: comparing or hashing it is an error."""

    def __eq__(self, other: object) -> bool:
        raise AssertionError("an item was compared")

    def __lt__(self, other: object) -> bool:
        raise AssertionError("an item was compared")

    __hash__ = None  # type: ignore[assignment]


def push(heap: ReadyHeap[Any], id: Any, item: Any = None, **order: float) -> None:  # noqa: A002 - as in push
    """Push with ordinary values for what a test does not care about; the item is the id unless given."""
    values = {"priority": 2.0, "run_at": 0.0, "created_at": 0.0, "now": 0.0} | order
    heap.push(id, id if item is None else item, **values)


def ticks(levels: tuple[int, ...] = (256, 64, 64, 64)) -> TimingWheel[Any, Any]:
    """Return a wheel that counts whole ticks from 0."""
    return TimingWheel(start=0, tick=1, levels=levels)
