# ruff: noqa: A001, A002 - `id` is the word for an entry's id
"""Owns delayed work that survives crashes: a timing wheel for when, a journal for what, a backoff for again.

It starts no thread and reads no clock, but for the one that `run` is given. Every change is one record, on disk
before the call returns, and takes effect in memory by the same code that reads it after a crash. Enqueue, cancel and
tick are O(1) per entry, plus a share of an fsync; opening is O(records since the last snapshot + what is pending).
An entry is handed out at least once: at most once per attempt, and never again after `done` has returned. Source:
Varghese and Lauck, "Hashed and Hierarchical Timing Wheels", SOSP 1987; Mohan et al., "ARIES", TODS 17(1), 1992.
"""

import random
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from itertools import count
from os import PathLike
from types import TracebackType
from typing import Final, Self

from scheduling.backoff import Backoff
from scheduling.entries import DeadEntry, Entry, Kind, about, died, enqueued, retried
from scheduling.ledger import Ledger
from scheduling.meters import DelayedMetrics, Meters
from scheduling.waiting import Waiting, on_axis

_BATCH: Final = 64
"""Entries that `run` has handed out at once: they share a record, and lose an attempt together in a crash."""


class DelayedScheduler:
    """Entries (bytes with a due time), handed out when they are due, kept in a journal until they are done.

    path: the journal's file, for this scheduler alone. torn: what was cut from its end on opening, or None.
    tick, levels: seconds, at least a microsecond, and slots of the wheel. An entry is never early, nor a tick late.
    backoff: how long an entry waits after a failed attempt. chance: numbers from 0 to 1 for its jitter.
    max_attempts: how often an entry is handed out before it is dead; an attempt that a crash ends counts.

    All times are seconds on one axis that survives restarts, such as those of `time.time`, and every `now` is read
    from it. A `now` before the latest tick's fires nothing: after a step back of the clock, entries wait until it is
    where it was. Safe to use from many threads, which then share fsyncs.

    Raises ValueError for numbers outside their ranges, and what `Journal` raises.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        tick: float = 0.001,
        levels: Sequence[int] = (256, 64, 64, 64),
        backoff: Backoff = Backoff(),  # noqa: B008 - a frozen value
        chance: Callable[[], float] = random.random,
        max_attempts: int = 5,
    ) -> None:
        if max_attempts < 1:
            raise ValueError(f"DelayedScheduler max_attempts is {max_attempts!r}: give 1 or more.")
        self._waiting = Waiting(tick, levels)
        self._backoff, self._chance, self._max_attempts = backoff, chance, max_attempts
        self._ending: set[int] = set()
        self._stopping = False
        self._meters = Meters()
        self._changed = threading.Condition()
        self._ledger = Ledger(path)
        self.torn: Final = self._ledger.torn
        self._ids = count(self._ledger.book.next_id)
        try:
            self._resume()
        except BaseException:
            self._ledger.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __len__(self) -> int:
        """Return how many entries are pending: those that wait and those in flight."""
        return len(self._ledger.book.pending)

    def enqueue(self, payload: bytes, *, now: float, delay: float | None = None, due: float | None = None) -> int:
        """Keep `payload` until it is due, and return its id once it is on disk.

        Give either `delay`, in seconds from `now`, or `due`; what is due already comes with the next tick. Raises
        ValueError for other times, and what `Journal.append` raises.
        """
        if delay is not None and due is None:
            due = now + delay
        elif delay is not None or due is None:
            raise ValueError(f"enqueue got delay={delay!r} and due={due!r}: give one of the two.")
        on_axis(due)
        with self._ledger.changing():
            id = next(self._ids)
            self._record(enqueued(Entry(id, due, 0, payload)))
        return id

    def cancel(self, id: int) -> bool:
        """Remove an entry that waits, and tell whether there was one; on disk when this returns.

        An entry that has been handed out is not touched and the answer is False: it is too late.
        """
        with self._ledger.changing():
            with self._changed:
                # First of all, so that no tick hands it out meanwhile.
                if not self._waiting.remove(id):
                    return False
                entry = self._ledger.book.pending[id]
            try:
                self._record(about(Kind.CANCELLED, [id]))
            except BaseException:
                with self._changed:
                    self._waiting.put([entry])
                raise
        return True

    def tick(self, now: float, limit: int = 1_000_000) -> list[Entry]:
        """Hand out what is due at `now`, the earliest first, at most `limit`; the rest comes with the next tick.

        That the attempts have begun is on disk when this returns, so that an entry which kills its process runs out
        of them. Each entry is in flight until `done`, `failed` or `hand_back` is called for it; after a crash it
        comes back, or is dead if that was its last attempt. Raises JournalError, and then nothing is handed out.
        """
        on_axis(now)
        with self._ledger.changing():
            with self._changed:
                ids = self._take_due(now, limit)
            if not ids:
                return []
            try:
                self._record(about(Kind.STARTED, ids))
            except BaseException:
                with self._changed:
                    self._waiting.put_back(ids)
                raise
            with self._changed:
                entries = [self._ledger.book.pending[id] for id in ids]
                self._meters.dispatched(now - entry.due for entry in entries)
        return entries

    def next_tick(self) -> float | None:
        """Return the time before which no tick can hand out anything, or None when nothing waits."""
        with self._changed:
            return self._waiting.next_time()

    def done(self, *ids: int) -> None:
        """End the attempts of these entries with success: when this returns they never come back.

        Raises LookupError when one is not in flight, and JournalError; then all are in flight as before.
        """
        with self._ledger.changing():
            self._end(ids, about(Kind.DONE, ids))

    def failed(self, id: int, error: str, *, now: float) -> float | None:
        """End an entry's attempt with a failure, and return when the next is due, or None if it is dead now.

        The end of the one and the time of the other are one record. Raises as `done` does.
        """
        with self._ledger.changing():
            entry = self._ledger.book.pending.get(id)
            attempt = entry.attempt if entry else 0
            if attempt >= self._max_attempts:
                self._end([id], died(id, error))
                return None
            due = on_axis(now + self._backoff.delay(attempt, self._chance))
            self._end([id], retried(id, due))
            return due

    def hand_back(self, *ids: int) -> None:
        """Let entries in flight whose work has not begun wait again; the attempt does not count. Raises as `done`."""
        with self._ledger.changing():
            self._end(ids, about(Kind.RELEASED, ids))

    def dead(self) -> list[DeadEntry]:
        """Return the entries that are out of attempts, the longest dead first. They are kept until forgotten."""
        with self._changed:
            return list(self._ledger.book.dead.values())

    def forget(self, id: int) -> bool:
        """Remove a dead entry for good and tell whether there was one."""
        with self._ledger.changing():
            if id not in self._ledger.book.dead:
                return False
            self._record(about(Kind.FORGOTTEN, [id]))
        return True

    def snapshot(self) -> None:
        """Shrink the journal to what is pending or dead; this also happens by itself. Raises as `Journal.snapshot`."""
        self._ledger.snapshot()

    def metrics(self) -> DelayedMetrics:
        """Return what there is and what has happened since the opening."""
        with self._changed:
            return self._meters.read(self._ledger)

    def run(
        self,
        handler: Callable[[Entry], object],
        *,
        clock: Callable[[], float] = time.time,
        longest_wait: float = 1.0,
        drain: bool = False,
    ) -> None:
        """Call `handler` with each entry when it is due, in this thread, until `stop` is called.

        An Exception of the handler is a failed attempt; anything else, such as KeyboardInterrupt, ends the loop with
        the entry in flight, and so does a JournalError. The loop looks at the clock every `longest_wait` seconds at
        least, so that it notices when that is set. drain: return as well when nothing is pending.
        """
        while not self._stopping and not (drain and not len(self)):
            entries = self.tick(clock(), _BATCH)
            self._work(handler, entries, clock)
            if not entries:
                self._wait(clock, longest_wait)

    def stop(self) -> None:
        """Let `run` return after the entry it is at, for good; from a handler, a signal handler or a thread."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()

    def close(self) -> None:
        """Close the journal when the calls under way have ended. What is in flight counts as ended by a crash."""
        self.stop()
        self._ledger.close()

    def _resume(self) -> None:
        """Let everything wait that is pending, but what a crash has ended the last attempt of."""
        book = self._ledger.book
        for key in sorted(book.started):
            if book.pending[key].attempt >= self._max_attempts:
                self._record(died(key, "The process ended during the last attempt."))
        book.started.clear()
        self._waiting.put(book.pending.values())

    def _record(self, record: bytes) -> None:
        """Make a change durable, then let it take effect."""
        self._ledger.append(record)
        with self._changed:
            self._apply(record)

    def _take_due(self, now: float, limit: int) -> list[int]:
        if self._waiting.has_passed(now):  # a clock that was set back
            return []
        self._meters.ticked(now)
        ids = self._waiting.take_due(now, limit)
        self._meters.asked = self._waiting.next_time()
        return ids

    def _apply(self, record: bytes) -> None:
        if waits := self._ledger.book.apply(record):
            self._waiting.put(waits)
            self._changed.notify_all()

    def _end(self, ids: Sequence[int], record: bytes) -> None:
        """Record what ends attempts; of two threads that want to end the same one, only the first may."""
        with self._changed:
            strangers = [id for id in ids if id not in self._ledger.book.started or id in self._ending]
            if strangers:
                raise LookupError(f"Entries {strangers} are not in flight: an attempt ends once, and after its tick.")
            self._ending.update(ids)
        try:
            self._ledger.append(record)
        except BaseException:
            with self._changed:
                self._ending.difference_update(ids)
            raise
        with self._changed:
            self._ending.difference_update(ids)
            self._apply(record)

    def _work(self, handler: Callable[[Entry], object], entries: list[Entry], clock: Callable[[], float]) -> None:
        left = deque(entries)
        try:
            while left and not self._stopping:
                self._attempt(handler, left.popleft(), clock)
        finally:
            if left:
                self.hand_back(*(entry.id for entry in left))

    def _attempt(self, handler: Callable[[Entry], object], entry: Entry, clock: Callable[[], float]) -> None:
        try:
            handler(entry)
        except Exception as error:  # noqa: BLE001 - whatever a handler raises is a failed attempt
            self.failed(entry.id, f"{type(error).__name__}: {error}", now=clock())
        else:
            self.done(entry.id)

    def _wait(self, clock: Callable[[], float], longest: float) -> None:
        with self._changed:
            wanted = self._waiting.next_time()
            timeout = longest if wanted is None else min(longest, wanted - clock())
            if timeout > 0 and not self._stopping:
                self._changed.wait(timeout)
