# ruff: noqa: A002 - `id` is the word for a job's id on every face of the product
"""Owns the order in which the jobs that one process holds start.

It never starts a job, reads a clock or touches a database. Of two jobs of one priority the older is always
the more urgent, however long both have waited, so aging never reorders a priority within itself: each has a
binary heap of its own, and only the first entries of these heaps are scored and compared. A push or a pop
costs O(log n) for n entries, a rescoring O(p log n) for p distinct priorities among them, three in most
installations; the moves within an array of p pointers are left out of account. A discard is O(1): the entry
stays behind as garbage until it comes up or until garbage outnumbers what is alive. Source: Williams,
"Algorithm 232: Heapsort", CACM 1964; lazy deletion as in the documentation of `heapq`.
"""

import math
from bisect import bisect_left, insort
from collections.abc import Hashable
from heapq import heapify, heappop, heappush
from typing import Final, Generic, Protocol, Self, TypeAlias, TypeVar
from uuid import UUID

from scheduling.aging import FAST, Aging


class Id(Hashable, Protocol):
    """What tells jobs apart and settles ties: hashable, and comparable with every other id in the heap."""

    def __lt__(self, other: Self, /) -> bool:
        """Tell whether this id comes first."""


T = TypeVar("T")

_Entry: TypeAlias = tuple[float, float, Id, int, T]
"""(run_at, created_at, key, entries dropped before this one, item).

Two entries with one key are never alive together: the first was dropped before the second was pushed, so the
fourth field differs and no comparison gets as far as the item. Neighbours share that integer, so it is cheap.
"""
_KEY: Final = 2
_ITEM: Final = 4

_Rank: TypeAlias = tuple[float, _Entry[T], float]
"""(effective priority, first entry, priority): how a level compares with the others."""


class _Level(Generic[T]):
    """The entries of one priority, as a heap, and its present place among the other priorities."""

    __slots__ = ("heap", "priority", "rank")

    def __init__(self, priority: float) -> None:
        self.priority = priority
        self.heap: list[_Entry[T]] = []
        self.rank: _Rank[T] | None = None


class ReadyHeap(Generic[T]):
    """A priority queue ordered by (effective priority, run_at, created_at, id), the most urgent first.

    The heap has one clock, which `push` and `rescore` move and which never goes back; all entries are
    compared as of that one moment. Times are seconds on any one axis, priorities start at 1, and all of them
    are finite. Items are never compared. A discarded item may stay referenced for a while, but no more of
    them than there are entries. Not thread-safe: the caller serialises access.
    """

    __slots__ = ("_aging", "_changes_at", "_clock", "_dead", "_dropped", "_levels", "_live", "_ranking")

    def __init__(self, aging: Aging = FAST) -> None:
        """Make an empty heap whose entries become more urgent as `aging` says."""
        self._aging = aging
        self._clock = -math.inf
        self._changes_at = math.inf
        self._dead = 0
        self._dropped = 0
        self._live: dict[Id, _Entry[T]] = {}
        self._levels: dict[float, _Level[T]] = {}
        self._ranking: list[_Rank[T]] = []

    def __len__(self) -> int:
        """Return how many entries there are."""
        return len(self._live)

    def __contains__(self, id: Id) -> bool:
        """Tell whether there is an entry with this id."""
        return _key(id) in self._live

    def push(self, id: Id, item: T, *, priority: float, run_at: float, created_at: float, now: float) -> None:
        """Add an entry, or move the one that has this id. O(log n)."""
        self.rescore(now)
        key = _key(id)
        if key in self._live:
            self._drop(key)
        entry = (run_at, created_at, key, self._dropped, item)
        self._live[key] = entry
        level = self._levels.get(priority)
        if level is None:
            level = self._levels[priority] = _Level(priority)
        heappush(level.heap, entry)
        if level.heap[0] is entry:
            self._rank(level)

    def pop(self) -> T:
        """Remove the most urgent entry and return its item. Raises IndexError when the heap is empty."""
        level = self._first_level()
        entry = heappop(level.heap)
        del self._live[entry[_KEY]]
        self._rank(level)
        if self._dead > len(self._live):
            self._sweep()
        return entry[_ITEM]

    def peek(self) -> T:
        """Return the item of the most urgent entry. Raises IndexError when the heap is empty."""
        return self._first_level().heap[0][_ITEM]

    def get(self, id: Id) -> T | None:
        """Return the item of the entry with this id, or None. O(1)."""
        entry = self._live.get(_key(id))
        return None if entry is None else entry[_ITEM]

    def discard(self, id: Id) -> bool:
        """Remove the entry with this id and tell whether there was one. O(1), amortised over the sweeps."""
        key = _key(id)
        if key not in self._live:
            return False
        self._drop(key)
        return True

    def rescore(self, now: float) -> bool:
        """Move the clock to `now` and tell whether that re-ordered anything; if not, the first is the same.

        O(1) while no effective priority that decides what is first can have changed since the last scoring.
        """
        if now <= self._clock:
            return False
        self._clock = now
        if now < self._changes_at:
            return False
        before = self._ranking.copy()
        self._changes_at = math.inf
        for level in list(self._levels.values()):
            self._rank(level)
        return self._ranking != before

    def drain(self) -> list[T]:
        """Remove everything and return the items, the most urgent first. O(n log n)."""
        return [self.pop() for _ in range(len(self))]

    def _first_level(self) -> _Level[T]:
        while self._ranking:
            level = self._levels[self._ranking[0][2]]
            if not self._dead or self._is_alive(level.heap[0]):
                return level
            self._rank(level)
        raise IndexError("ReadyHeap is empty: ask `if heap` before peek() or pop().")

    def _rank(self, level: _Level[T]) -> None:
        """Give a level the place that its first living entry earns it, or remove it when it has none."""
        ranking, heap = self._ranking, level.heap
        while self._dead and heap and not self._is_alive(heap[0]):
            heappop(heap)
            self._dead -= 1
        if level.rank is not None:
            del ranking[bisect_left(ranking, level.rank)]
        if not heap:
            del self._levels[level.priority]
            return
        effective, unchanged_for = self._aging.outlook(level.priority, self._clock - heap[0][0])
        self._changes_at = min(self._changes_at, self._clock + unchanged_for)
        level.rank = (effective, heap[0], level.priority)
        insort(ranking, level.rank)

    def _is_alive(self, entry: _Entry[T]) -> bool:
        return self._live.get(entry[_KEY]) is entry

    def _drop(self, key: Id) -> None:
        del self._live[key]
        self._dropped += 1
        self._dead += 1
        if self._dead > len(self._live):
            self._sweep()

    def _sweep(self) -> None:
        for level in list(self._levels.values()):
            level.heap = [entry for entry in level.heap if self._is_alive(entry)]
            heapify(level.heap)
            self._rank(level)
        self._dead = 0


def _key(id: Id) -> Id:
    # A UUID hashes and compares in Python code, its integer does so in C, and both order alike.
    return id.int if isinstance(id, UUID) else id
