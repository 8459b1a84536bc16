# ruff: noqa: A001, A002 - `id` is the word for an entry's id
"""Owns which entries wait, and which of them may be handed out now: the volatile side of the delayed scheduler.

It never writes anything down, and what it knows can be made again from a book. A timing wheel, and behind it, in
order, what has left the wheel and was not taken yet because somebody wanted only so much at once. Every operation is
O(1) per entry. Source: Varghese and Lauck, "Hashed and Hierarchical Timing Wheels", SOSP 1987, scheme 7.
"""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final

from scheduling.entries import Entry
from scheduling.wheel import TimingWheel

_FARTHEST: Final = 1e12
"""Seconds; times within this distance from 0 have a place in a wheel of any resolution that is allowed."""
_FINEST: Final = 1e-6


class Waiting:
    """Ids by due time. Time is moved by `take_due` and never goes back. Not thread-safe.

    Raises ValueError when the resolution or the levels make no wheel.
    """

    def __init__(self, tick: float, levels: Sequence[int]) -> None:
        if not tick >= _FINEST:
            raise ValueError(f"DelayedScheduler tick is {tick!r}: give seconds, at least {_FINEST}.")
        self._wheel: TimingWheel[int, None] = TimingWheel(tick=tick, levels=levels)
        self._ready: dict[int, None] = {}
        self._latest = -_FARTHEST

    def put(self, entries: Iterable[Entry]) -> None:
        """Let entries wait until they are due."""
        for entry in entries:
            self._wheel.insert(entry.id, entry.due, None)

    def remove(self, id: int) -> bool:
        """Let an entry wait no longer, and tell whether it did."""
        if id in self._ready:
            del self._ready[id]
            return True
        return self._wheel.cancel(id)

    def has_passed(self, now: float) -> bool:
        """Tell whether time is beyond `now` already, as when a clock was set back; then nothing is due."""
        return now < self._latest

    def take_due(self, now: float, limit: int) -> list[int]:
        """Move time on to `now`, and remove and return at most `limit` ids that are due, the earliest first."""
        self._latest = now
        self._ready.update(self._wheel.advance(now))
        ids = list(islice(self._ready, limit))
        for id in ids:
            del self._ready[id]
        return ids

    def put_back(self, ids: Iterable[int]) -> None:
        """Let what was taken be the first to be taken again."""
        self._ready = dict.fromkeys(ids) | self._ready

    def next_time(self) -> float | None:
        """Return the time before which nothing is due, or None when nothing waits."""
        if self._ready:
            return self._latest
        expiry = self._wheel.next_expiry()
        return None if expiry is None else max(expiry, self._latest)


def on_axis(time: float) -> float:
    """Return a time that has a place in every wheel. Raises ValueError for any other."""
    if not -_FARTHEST <= time <= _FARTHEST:
        raise ValueError(f"Time is {time!r}: give seconds between -1e12 and 1e12.")
    return time
