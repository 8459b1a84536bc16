"""What the tests of scheduling share: wheels with ordinary values, and jobs that nobody may compare."""

from dataclasses import dataclass
from typing import Any

from scheduling import ReadyHeap, TimingWheel


class Incomparable:
    """An item that must never be compared: comparing or hashing it is an error."""

    def __eq__(self, other: object) -> bool:
        raise AssertionError("an item was compared")

    def __lt__(self, other: object) -> bool:
        raise AssertionError("an item was compared")

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, eq=False)
class Job(Incomparable):
    """What a heap holds, with ordinary values for what a test does not care about."""

    id: Any
    priority: float = 2.0
    run_at: float = 0.0
    created_at: float = 0.0


def push(heap: ReadyHeap[Job], id: Any, now: float = 0.0, **order: float) -> Job:  # noqa: A002 - as in Job
    """Push a job with this id, and return it."""
    job = Job(id, **order)
    heap.push(job, now)
    return job


def drained(heap: ReadyHeap[Job]) -> list[Any]:
    """Empty a heap and return the ids, the most urgent first."""
    return [job.id for job in heap.drain()]


def ticks(levels: tuple[int, ...] = (256, 64, 64, 64)) -> TimingWheel[Any, Any]:
    """Return a wheel that counts whole ticks from 0."""
    return TimingWheel(start=0, tick=1, levels=levels)
