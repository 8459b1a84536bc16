# ruff: noqa: A002 - `id` is the word for a job's id on every face of the product
"""Owns the order in which the jobs that one process holds start.

It never starts a job, reads a clock or touches a database. Of two jobs of one priority the older is always the more
urgent, however long both have waited, so aging never reorders a priority within itself: each has a binary heap of its
own, a level, and only the first entries of the levels are scored and compared. An entry costs two places in a
dictionary and one in a list beyond its own: 68 bytes at ten thousand entries, up to 120 just after the dictionaries
have grown, and less where many are due at one time.

A push or a pop costs O(log n) for n entries, a rescoring O(p log n) for p distinct priorities among them, three in
most installations; the moves within an array of pointers are left out of account. With k entries at one time, which
is what a bulk enqueue makes, a push or a pop of one costs O(1), amortised, and its share of one sort in O(k log k);
only a push to a time whose entries are sorted already costs O(log k). A discard is O(1), amortised: garbage stays
behind until it comes up or until it outnumbers what is alive. Source: Williams, "Algorithm 232: Heapsort", CACM 1964;
lazy deletion as in the documentation of `heapq`.
"""

import math
from bisect import bisect_left, insort
from collections.abc import Iterable
from heapq import heapify, heappop
from typing import Final, Generic, TypeVar

from scheduling.aging import FAST, Aging
from scheduling.levels import Id, Level, Rank, Ready, key_of, urgency_of

T = TypeVar("T", bound=Ready)

_KEY: Final = 3
_PRIORITY: Final = 4
"""Where these stand in a rank."""


class ReadyHeap(Generic[T]):
    """A priority queue ordered by (effective priority, run_at, created_at, id), the most urgent first.

    The heap has one clock, which `push` and `rescore` move and which never goes back; all entries are compared as of
    that one moment. Times are seconds on any one axis, priorities start at 1, and all of them are finite. Items
    themselves are never compared. A discarded item may stay referenced for a while, but no more of them than there are
    entries. Not thread-safe: the caller serialises access.
    """

    __slots__ = ("_aging", "_changes_at", "_clock", "_dead", "_levels", "_live", "_ranking", "_singles")

    def __init__(self, aging: Aging = FAST) -> None:
        """Make an empty heap whose entries become more urgent as `aging` says."""
        self._aging = aging
        self._clock = -math.inf
        self._changes_at = math.inf
        self._dead = 0
        self._live: dict[Id, T] = {}
        self._singles: dict[float, T] = {}
        self._levels: dict[float, Level[T]] = {}
        self._ranking: list[Rank] = []

    def __len__(self) -> int:
        """Return how many entries there are."""
        return len(self._live)

    def __contains__(self, id: Id) -> bool:
        """Tell whether there is an entry with this id."""
        return key_of(id) in self._live

    def push(self, item: T, now: float) -> None:
        """Add an entry, or move the one that has this id; `now` is as in `rescore`. O(log n)."""
        if now > self._clock:
            self.rescore(now)
        key = key_of(item.id)
        present = self._live.get(key)
        if present is item:
            return
        if present is not None:
            self._drop(key)
        self._live[key] = item
        level = self._levels.get(item.priority)
        if level is None:
            level = self._levels[item.priority] = Level(item.priority, self._singles)
            level.put(item)
        else:
            level.put(item)
            if item.run_at > level.rank[1] or urgency_of(item) >= level.rank[1:4]:
                return
            del self._ranking[bisect_left(self._ranking, level.rank)]
        self._rank(level, item)

    def extend(self, items: Iterable[T], now: float) -> None:
        """Push many items: the outcome is the same, but each priority is ranked only once. O(log n) for each."""
        self.rescore(now)
        firsts: dict[float, T] = {}
        for item in items:
            key = key_of(item.id)
            level = self._levels.get(item.priority)
            if level is None or key in self._live:
                self._rank_anew(firsts)
                self.push(item, now)
                continue
            self._live[key] = item
            level.put(item)
            first = firsts.get(item.priority, level.first)
            if item.run_at <= first.run_at and urgency_of(item) < urgency_of(first):
                firsts[item.priority] = item
        self._rank_anew(firsts)

    def pop(self) -> T:
        """Remove the most urgent entry and return its item. Raises IndexError when the heap is empty."""
        level = self._first_level()
        item = level.first
        del self._live[level.rank[_KEY]]
        if self._singles.get(item.run_at) is item:
            del self._singles[heappop(level.times)]
        else:
            bucket = level.buckets[item.run_at]
            bucket.sort_once()
            bucket.pop()
        self._advance(level)
        if self._dead > len(self._live):
            self._sweep()
        return item

    def peek(self) -> T:
        """Return the item of the most urgent entry. Raises IndexError when the heap is empty."""
        return self._first_level().first

    def get(self, id: Id) -> T | None:
        """Return the item of the entry with this id, or None. O(1)."""
        return self._live.get(key_of(id))

    def discard(self, id: Id) -> bool:
        """Remove the entry with this id and tell whether there was one. O(1), amortised over the sweeps."""
        key = key_of(id)
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
        before = self._ranking
        self._rank_all()
        return self._ranking != before

    def drain(self) -> list[T]:
        """Remove everything and return the items, the most urgent first. O(n log n)."""
        return [self.pop() for _ in range(len(self))]

    def _first_level(self) -> Level[T]:
        while self._ranking:
            level = self._levels[self._ranking[0][_PRIORITY]]
            if not self._dead or self._is_alive(level.first):
                return level
            self._advance(level)
        raise IndexError("ReadyHeap is empty: ask `if heap` before peek() or pop().")

    def _advance(self, level: Level[T]) -> None:
        """Rank the first level by its next living entry, or remove it when it has none."""
        del self._ranking[0]
        first = self._find_first(level)
        if first is None:
            del self._levels[level.priority]
            return
        effective, run_at, _, _, priority = level.rank
        # What is no older than an entry that has not aged has not aged either.
        is_as_before = effective == priority or first.run_at == run_at
        self._rank(level, first, effective if is_as_before else None)

    def _find_first(self, level: Level[T]) -> T | None:
        """Return the first living entry of a level, having removed the garbage in front of it."""
        times = level.times
        while times:
            single = self._singles.get(times[0])
            if single is not None and single.priority == level.priority:
                return single
            bucket = level.buckets.get(times[0])
            if bucket is None:
                self._dead -= 1
            else:
                bucket.sort_once()
                while self._dead and bucket and not self._is_alive(bucket[-1]):
                    bucket.pop()
                    self._dead -= 1
                if bucket:
                    return bucket[-1]
                del level.buckets[times[0]]
            heappop(times)
        return None

    def _rank_anew(self, firsts: dict[float, T]) -> None:
        """Give levels the places that new first entries earn them, and forget about those."""
        for priority, first in firsts.items():
            level = self._levels[priority]
            del self._ranking[bisect_left(self._ranking, level.rank)]
            self._rank(level, first)
        firsts.clear()

    def _rank(self, level: Level[T], first: T, effective: float | None = None) -> None:
        """Give a level, which must not be in the ranking, the place that its first entry earns it."""
        if effective is None:
            effective, unchanged_for = self._aging.outlook(level.priority, self._clock - first.run_at)
            self._changes_at = min(self._changes_at, self._clock + unchanged_for)
        level.first = first
        level.rank = (effective, first.run_at, first.created_at, key_of(first.id), level.priority)
        insort(self._ranking, level.rank)

    def _rank_all(self) -> None:
        self._changes_at = math.inf
        self._ranking = []
        for level in list(self._levels.values()):
            first = level.first if self._is_alive(level.first) else self._find_first(level)
            if first is None:
                del self._levels[level.priority]
            else:
                self._rank(level, first)

    def _is_alive(self, item: T) -> bool:
        return self._live.get(key_of(item.id)) is item

    def _drop(self, key: Id) -> None:
        item = self._live.pop(key)
        if self._singles.get(item.run_at) is item:
            del self._singles[item.run_at]
        self._dead += 1
        if self._dead > len(self._live):
            self._sweep()

    def _sweep(self) -> None:
        """Build the levels anew from what is alive."""
        self._dead = 0
        self._singles.clear()
        for level in self._levels.values():
            level.times.clear()
            level.buckets.clear()
        for item in self._live.values():
            self._levels[item.priority].put(item, list.append)
        for level in self._levels.values():
            heapify(level.times)
        self._rank_all()
