# ruff: noqa: A002 - `id` is the word for a job's id on every face of the product
"""Owns what a `ReadyHeap` keeps of the jobs of one priority, and how these are ordered among themselves.

It never scores, reads a clock or knows which jobs are alive. A binary heap holds bare times, each once. What is due at
a time is looked up: a single entry as it is, several as a bucket, which is sorted once its time has come up. So no
tuple is kept, no Python code compares, and an entry costs a place in a list and one in a dictionary that all levels
share. Source: Williams, "Algorithm 232: Heapsort", CACM 1964.
"""

from bisect import bisect_left
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from heapq import heappush
from operator import attrgetter
from typing import Any, Final, Generic, Protocol, Self, TypeAlias, TypeVar
from uuid import UUID


class Id(Hashable, Protocol):
    """What tells jobs apart and settles ties: hashable, and comparable with every other id in the heap."""

    def __lt__(self, other: Self, /) -> bool:
        """Tell whether this id comes first."""


class Ready(Protocol):
    """What a heap holds: an item that says itself where it stands.

    None of this may change from the push on, not even after a discard: garbage is known by it.
    """

    @property
    def id(self) -> Id:
        """What tells it from all others."""

    @property
    def priority(self) -> float:
        """Its urgency before it ages: from 1 on, the smaller the more urgent."""

    @property
    def run_at(self) -> float:
        """When it is due, in seconds."""

    @property
    def created_at(self) -> float:
        """When it was made, in seconds."""


T = TypeVar("T", bound=Ready)

Rank: TypeAlias = tuple[float, float, float, Id, float]
"""(effective priority, run_at, created_at, key, priority): how a level compares, by its first entry."""

_CREATED_AT: Final = attrgetter("created_at")
_ID: Final = attrgetter("id")
_UUID: Final = attrgetter("id.int")


class Bucket(list[T]):
    """The entries of one priority at one time, and garbage: in order of arrival, once sorted the first at the end."""

    __slots__ = ("is_sorted",)

    def __init__(self, *items: T) -> None:
        super().__init__(items)
        self.is_sorted = False

    def add(self, item: T) -> None:
        """Add an entry. O(1), or O(log k) for k entries that are sorted already."""
        if not self.is_sorted:
            self.append(item)
            return
        key = self._key()
        urgency = (item.created_at, key(item))
        # What was made later mostly comes later.
        if (self[0].created_at, key(self[0])) < urgency:
            self.insert(0, item)
        else:
            at = bisect_left(self, True, key=lambda other: (other.created_at, key(other)) < urgency)
            self.insert(at, item)

    def sort_once(self) -> None:
        """Make the last entry the most urgent one, for good. O(k log k) the first time, then O(1)."""
        if not self.is_sorted:
            # Sorting is stable, and twice by one value is quicker than once by a pair.
            self.sort(key=self._key(), reverse=True)
            self.sort(key=_CREATED_AT, reverse=True)
            self.is_sorted = True

    def _key(self) -> Callable[[T], Any]:
        # As `key_of`, without Python code for each entry.
        return _UUID if isinstance(self[0].id, UUID) else _ID


@dataclass(slots=True, eq=False)
class Level(Generic[T]):
    """The entries of one priority: a heap of their times, and what is due at each.

    That is the entry in `singles`, which all levels share, if it is of this priority, else a bucket. A time that has
    neither is garbage. `first` is the entry that `rank` is about; it may have been dropped since.
    """

    priority: float
    singles: dict[float, T]
    times: list[float] = field(default_factory=list)
    buckets: dict[float, Bucket[T]] = field(default_factory=dict)
    first: T = field(init=False)
    rank: Rank = field(init=False)

    def put(self, item: T, enter: Callable[[list[float], float], None] = heappush) -> None:
        """Add an entry; `enter` adds its time, if that is a new one. O(log n)."""
        run_at = item.run_at
        bucket = self.buckets.get(run_at)
        if bucket is not None:
            bucket.add(item)
            return
        single = self.singles.setdefault(run_at, item)
        if single is item:
            enter(self.times, run_at)
        elif single.priority == self.priority:
            self.buckets[run_at] = Bucket(self.singles.pop(run_at), item)
        else:
            self.buckets[run_at] = Bucket(item)
            enter(self.times, run_at)


def key_of(id: Id) -> Id:
    """Return what stands for an id in comparisons and dictionaries."""
    # A UUID hashes and compares in Python code, its integer does so in C, and both order alike.
    return id.int if isinstance(id, UUID) else id


def urgency_of(item: Ready) -> tuple[float, float, Id]:
    """Return what decides inside a priority: the smaller the more urgent."""
    return item.run_at, item.created_at, key_of(item.id)
