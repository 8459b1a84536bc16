# ruff: noqa: A002 - `id` is the word for a job's id on every face of the product
"""Owns what waits for a time: timers that are set, moved, cancelled and, once due, handed out in order.

It never reads a clock, sleeps or runs what is due. A hierarchical timing wheel: from level to level the slots
get longer; a timer lies in the lowest level whose present revolution contains its tick, and beyond the top
level in an overflow, by revolution. Where it lies follows from its tick and the present tick alone, so its
tick is all that is remembered. Setting and cancelling are O(1), or O(log r) where that opens one of r
revolutions in the overflow. An advance is O(levels + k + m) for k timers fired and m moved to a lower level,
however many are pending and however far it jumps, because it looks at bitmaps of occupied slots instead of at
slots. Source: Varghese and Lauck, "Hashed and Hierarchical Timing Wheels", SOSP 1987, scheme 7.
"""

import math
from bisect import bisect_right
from collections.abc import Hashable, Sequence
from heapq import heapify, heappop, heappush
from typing import Generic, TypeAlias, TypeVar

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")

_Slot: TypeAlias = dict[K, T]
"""Timers by id, in the order in which they were set."""


class _Level(Generic[K, T]):
    """One revolution: `size` slots of `unit` ticks, and for each that holds a timer a bit in `occupied`."""

    __slots__ = ("occupied", "size", "slots", "unit")

    def __init__(self, unit: int, size: int) -> None:
        self.unit = unit
        self.size = size
        self.slots: list[_Slot[K, T]] = [{} for _ in range(size)]
        self.occupied = 0

    def put(self, tick: int, id: K, item: T) -> None:
        index = tick // self.unit % self.size
        slot = self.slots[index]
        if not slot:
            self.occupied |= 1 << index
        slot[id] = item

    def remove(self, tick: int, id: K) -> None:
        slot = self.slots[tick // self.unit % self.size]
        del slot[id]
        if not slot:
            self.take(tick)

    def take_all(self) -> list[_Slot[K, T]]:
        """Empty the level and return its occupied slots, the earliest first."""
        return self._take(self.occupied)

    def take_before(self, tick: int) -> list[_Slot[K, T]]:
        """Empty the slots in front of the one that contains `tick` and return them, the earliest first."""
        return self._take(self.occupied & ((1 << tick // self.unit % self.size) - 1))

    def take(self, tick: int) -> list[_Slot[K, T]]:
        """Empty the slot that contains `tick` and return it, or nothing when it is not occupied."""
        return self._take(self.occupied & (1 << tick // self.unit % self.size))

    def first_tick(self, now: int) -> int | None:
        """Return where the first occupied slot begins, or None; `now` is a tick of the present revolution."""
        if not self.occupied:
            return None
        revolution = now // self.unit // self.size
        return (revolution * self.size + _lowest_bit(self.occupied)) * self.unit

    def _take(self, bits: int) -> list[_Slot[K, T]]:
        self.occupied ^= bits
        taken = []
        while bits:
            index = _lowest_bit(bits)
            bits &= bits - 1
            taken.append(self.slots[index])
            self.slots[index] = {}
        return taken


class _Overflow(Generic[K, T]):
    """What lies beyond the top level: its later revolutions of `unit` ticks that hold a timer, by number."""

    __slots__ = ("numbers", "slots", "unit")

    def __init__(self, unit: int) -> None:
        self.unit = unit
        self.slots: dict[int, _Slot[K, T]] = {}
        self.numbers: list[int] = []

    def put(self, tick: int, id: K, item: T) -> None:
        number = tick // self.unit
        slot = self.slots.get(number)
        if slot is None:
            slot = self.slots[number] = {}
            heappush(self.numbers, number)
        slot[id] = item

    def remove(self, tick: int, id: K) -> None:
        number = tick // self.unit
        del self.slots[number][id]
        if self.slots[number]:
            return
        del self.slots[number]
        # The heap keeps the numbers of slots that are gone until they come up or outnumber the others.
        if len(self.numbers) > 2 * len(self.slots):
            self.numbers = list(self.slots)
            heapify(self.numbers)

    def take_before(self, tick: int) -> list[_Slot[K, T]]:
        """Remove the revolutions in front of the one that contains `tick` and return them, earliest first."""
        taken = []
        while self.numbers and self.numbers[0] < tick // self.unit:
            taken.append(self.slots.pop(heappop(self.numbers), {}))
        return taken

    def take(self, tick: int) -> list[_Slot[K, T]]:
        """Remove the revolution that contains `tick` and return it, or nothing when it holds no timer."""
        slot = self.slots.pop(tick // self.unit, None)
        return [] if slot is None else [slot]

    def first_tick(self, now: int) -> int | None:  # noqa: ARG002 - as in a level, which needs it
        """Return where the first revolution that holds a timer begins, or None."""
        while self.numbers and self.numbers[0] not in self.slots:
            heappop(self.numbers)
        return self.numbers[0] * self.unit if self.numbers else None


class TimingWheel(Generic[K, T]):
    """Timers in ticks of `tick` seconds since `start`; each fires at the first tick at or after its due time.

    start, tick: seconds, on the axis of every time that is passed in later. With ints for these and for all
        times the arithmetic is exact at any size. With floats too a timer never fires early, and at latest
        one tick after it is due, to within the resolution of a float.
    levels: slots per level, each at least 2. The defaults reach 256 ms, 16 s, 17 min and 19 h.

    Raises ValueError when a value is outside its range. Not thread-safe: the caller serialises access.
    """

    __slots__ = ("_ends", "_late", "_late_from", "_levels", "_now", "_pending", "_spans", "_start", "_tick", "_tiers")

    def __init__(
        self,
        *,
        start: float = 0.0,
        tick: float = 0.001,
        levels: Sequence[int] = (256, 64, 64, 64),
    ) -> None:
        """Make an empty wheel that stands at `start`."""
        if not -math.inf < start < math.inf:
            raise ValueError(f"TimingWheel start is {start!r}: give finite seconds.")
        if not 0 < tick < math.inf:
            raise ValueError(f"TimingWheel tick is {tick!r}: give finite seconds above 0.")
        if not levels or any(size < 2 for size in levels):
            raise ValueError(f"TimingWheel levels are {levels!r}: give numbers of slots, each at least 2.")
        self._start = start
        self._tick = tick
        self._pending: dict[K, int] = {}
        self._late: _Slot[K, T] = {}
        self._late_from = 0
        self._levels: list[_Level[K, T]] = []
        unit = 1
        for size in levels:
            self._levels.append(_Level(unit, size))
            unit *= size
        self._tiers: list[_Level[K, T] | _Overflow[K, T]] = [*self._levels, _Overflow(unit)]
        self._now = 0
        self._spans = [level.unit * level.size for level in self._levels]
        self._ends = self._spans

    def __len__(self) -> int:
        """Return how many timers are pending."""
        return len(self._pending)

    def __contains__(self, id: K) -> bool:
        """Tell whether a timer with this id is pending."""
        return id in self._pending

    def insert(self, id: K, due: float, item: T) -> None:
        """Set a timer, or move the one that has this id. O(1). Raises ValueError when `due` is not finite.

        What is due already fires at the next advance.
        """
        tick = self._tick_from(due)
        pending = len(self._pending)
        self._pending.setdefault(id, tick)
        # Not asked before: each look-up hashes the id, which takes Python code for a UUID.
        if len(self._pending) == pending:
            self.cancel(id)
            self._pending[id] = tick
        if tick > self._now:
            self._tiers[bisect_right(self._ends, tick)].put(tick, id, item)
        else:
            self._late_from = min(self._late_from, tick) if self._late else tick
            self._late[id] = item

    def cancel(self, id: K) -> bool:
        """Remove the timer with this id and tell whether there was one. O(1)."""
        tick = self._pending.pop(id, None)
        if tick is None:
            return False
        if tick > self._now:
            self._tiers[bisect_right(self._ends, tick)].remove(tick, id)
        else:
            del self._late[id]
        return True

    def advance(self, now: float) -> list[tuple[K, T]]:
        """Move on to `now` and return what is due as (id, item), ordered by tick, then by when it was set.

        Returns nothing, and does not move, when `now` lies before the present tick.
        """
        target = self._tick_at(now)
        if target < self._now:
            return []
        # In one tier the present tick and the target share a revolution but not a slot, or the target is in
        # the lowest. All below that tier is due and all above stays; in it, only the target's slot can hold
        # both, and not even that in the lowest, where a slot is a tick.
        depth = bisect_right(self._ends, target)
        due = [self._late] if self._late else []
        due += [slot for level in self._levels[:depth] if level.occupied for slot in level.take_all()]
        due += self._tiers[depth].take_before(target)
        mixed = self._tiers[depth].take(target)
        self._move_to(target)
        due += map(self._settle, mixed) if depth else mixed
        if not due:
            return []
        self._late = {}
        fired = [timer for slot in due for timer in slot.items()]
        ticks = [self._pending.pop(key) for key, _ in fired]
        return [fired[place] for place in sorted(range(len(fired)), key=ticks.__getitem__)]

    def next_expiry(self) -> float | None:
        """Return the time until which nothing can fire, or None when nothing is pending.

        That is when the first timer fires if it lies in the lowest level, else when its slot begins: an
        advance to that time moves the timers of the slot down, and the next answer is closer.
        """
        if self._late:
            return self._time_of(self._late_from)
        for tier in self._tiers:
            tick = tier.first_tick(self._now)
            if tick is not None:
                return self._time_of(tick)
        return None

    def _settle(self, slot: _Slot[K, T]) -> _Slot[K, T]:
        """Move what is not due yet to lower levels and return what is due."""
        due = {}
        for key, item in slot.items():
            tick = self._pending[key]
            if tick > self._now:
                self._tiers[bisect_right(self._ends, tick)].put(tick, key, item)
            else:
                due[key] = item
        return due

    def _move_to(self, tick: int) -> None:
        self._now = tick
        if tick >= self._ends[0]:
            self._ends = [(tick // span + 1) * span for span in self._spans]

    def _tick_at(self, now: float) -> int:
        """Return the last tick that has begun at `now`."""
        since = now - self._start
        if isinstance(since, int) and isinstance(self._tick, int):
            return since // self._tick
        return math.floor(since / self._tick)

    def _tick_from(self, due: float) -> int:
        """Return the first tick at or after `due`: the one after the last that any earlier time reaches."""
        if isinstance(due, int) and isinstance(self._start, int) and isinstance(self._tick, int):
            return self._tick_at(due - 1) + 1
        try:
            # As `_tick_at` has it for floats, without a call per timer.
            return math.floor((math.nextafter(due, -math.inf) - self._start) / self._tick) + 1
        except (OverflowError, ValueError):
            raise ValueError(f"TimingWheel due time is {due!r}: give finite seconds.") from None

    def _time_of(self, tick: int) -> float:
        """Return the earliest time, to within rounding, at which `tick` has begun."""
        time = self._start + tick * self._tick
        # A sum rounded to just below that time would make whoever waits for it wait again. The larger operand
        # of the difference to the start says how finely times can be told apart.
        while self._tick_at(time) < tick:
            time += math.ulp(max(abs(time), abs(self._start)))
        return time


def _lowest_bit(bits: int) -> int:
    return (bits & -bits).bit_length() - 1
