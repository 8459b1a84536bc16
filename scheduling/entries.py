# ruff: noqa: A001, A002 - `id` is the word for an entry's id
"""Owns what the delayed scheduler writes into its journal, and what a sequence of such records adds up to.

It never writes, waits or reads a clock. The same `Book.apply` runs when something happens and when it is read again
after a crash, so what is in memory and what is recovered cannot differ. A record is O(1), or O(n) for the n ids that
it names; the records of a book are O(entries that are pending or dead). Source: the fold of a log into a state,
Gray and Reuter, "Transaction Processing", 1993, chapter 10.
"""

import struct
from collections.abc import Iterable, Iterator
from enum import IntEnum
from struct import Struct
from typing import Final, NamedTuple


class Kind(IntEnum):
    """The first byte of a record: what has happened."""

    ENQUEUED = 1
    STARTED = 2
    RELEASED = 3
    RETRIED = 4
    DONE = 5
    CANCELLED = 6
    DIED = 7
    FORGOTTEN = 8
    NEXT_ID = 9


class Entry(NamedTuple):
    """Something to do at a time.

    id: grows from entry to entry, and is never used again. due: seconds on the caller's axis. attempt: how many times
    it has been handed out, this one included. payload: bytes that only the caller understands.
    """

    id: int
    due: float
    attempt: int
    payload: bytes


class DeadEntry(NamedTuple):
    """An entry that is out of attempts, and what its last one ended with."""

    entry: Entry
    error: str


_KINDS: Final = {kind.value: kind for kind in Kind}
"""A call of the enumeration itself would be a fifth of the time that a record takes to be read."""
_ENQUEUED: Final = Struct(">BQdI")
_RETRIED: Final = Struct(">BQd")
_ONE: Final = Struct(">BQ")
_MANY: Final = frozenset({Kind.STARTED, Kind.RELEASED, Kind.DONE, Kind.CANCELLED, Kind.FORGOTTEN})
LONGEST_ERROR: Final = 10_000
"""Characters of an error's text that are kept."""


def enqueued(entry: Entry) -> bytes:
    """Return the record of a new entry."""
    return _ENQUEUED.pack(Kind.ENQUEUED, entry.id, entry.due, entry.attempt) + entry.payload


def retried(id: int, due: float) -> bytes:
    """Return the record that ends an attempt and sets the next, in one."""
    return _RETRIED.pack(Kind.RETRIED, id, due)


def died(id: int, text: str) -> bytes:
    """Return the record that ends the last attempt of an entry; a very long text is cut."""
    return _ONE.pack(Kind.DIED, id) + text[:LONGEST_ERROR].encode(errors="backslashreplace")


def next_id(id: int) -> bytes:
    """Return the record that all ids below `id` have been used, though nothing else may tell of them."""
    return _ONE.pack(Kind.NEXT_ID, id)


def about(kind: Kind, ids: Iterable[int]) -> bytes:
    """Return a record that says the same of several entries at once."""
    ids = tuple(ids)
    return struct.pack(f">B{len(ids)}Q", kind, *ids)


def unpack(record: bytes) -> tuple[Kind, tuple[int, ...], float, int, bytes]:
    """Return (kind, ids, due, attempt, payload or error text), with zeros for what the kind does not have.

    Raises ValueError for a record that is none of these.
    """
    try:
        kind = _KINDS[record[0]]
        if kind is Kind.ENQUEUED:
            _, id, due, attempt = _ENQUEUED.unpack_from(record)
            return kind, (id,), due, attempt, record[_ENQUEUED.size :]
        if kind is Kind.RETRIED:
            _, id, due = _RETRIED.unpack(record)
            return kind, (id,), due, 0, b""
        if kind in _MANY:
            return kind, struct.unpack(f">x{len(record) // 8}Q", record), 0.0, 0, b""
        _, id = _ONE.unpack_from(record)
        return kind, (id,), 0.0, 0, record[_ONE.size :]
    except (LookupError, struct.error) as problem:
        raise ValueError(f"Record {record[:32]!r} is none of a delayed scheduler.") from problem


class Book:
    """Every entry that is neither done nor cancelled nor forgotten.

    pending: entries by id, waiting or in flight. started: the ids in flight. dead: the dead ones by id. next_id: the
    smallest id never used.
    """

    def __init__(self) -> None:
        self.pending: dict[int, Entry] = {}
        self.started: set[int] = set()
        self.dead: dict[int, DeadEntry] = {}
        self.next_id = 1

    def apply(self, record: bytes) -> list[Entry]:
        """Let a record take effect, and return the entries that now wait for their time because of it.

        An id that is not pending is passed over: a call that a signal interrupted may have got into the journal
        though its caller had to assume that it did not. Raises ValueError for a record that is none of ours.
        """
        kind, ids, due, attempt, rest = unpack(record)
        if kind is Kind.ENQUEUED:
            entry = self.pending[ids[0]] = Entry(ids[0], due, attempt, rest)
            self.next_id = max(self.next_id, entry.id + 1)
            return [entry]
        if kind is Kind.NEXT_ID:
            self.next_id = max(self.next_id, *ids)
            return []
        if kind is Kind.FORGOTTEN:
            for id in ids:
                self.dead.pop(id, None)
            return []
        known = [id for id in ids if id in self.pending]
        if kind is Kind.STARTED:
            self._start(known)
            return []
        self.started.difference_update(known)
        if kind in (Kind.RELEASED, Kind.RETRIED):
            return [self._wait(id, due if kind is Kind.RETRIED else None) for id in known]
        for id in known:
            entry = self.pending.pop(id)
            if kind is Kind.DIED:
                self.dead[id] = DeadEntry(entry, rest.decode())
        return []

    def records(self) -> Iterator[bytes]:
        """Yield records that add up to this book, the fewest there are."""
        yield next_id(self.next_id)
        for entry in self.pending.values():
            in_flight = entry.id in self.started
            yield enqueued(entry._replace(attempt=entry.attempt - in_flight))
            if in_flight:
                yield about(Kind.STARTED, [entry.id])
        for entry, text in self.dead.values():
            yield enqueued(entry)
            yield died(entry.id, text)

    def _start(self, ids: list[int]) -> None:
        self.started.update(ids)
        for id in ids:
            entry = self.pending[id]
            self.pending[id] = entry._replace(attempt=entry.attempt + 1)

    def _wait(self, id: int, due: float | None) -> Entry:
        """Set an entry's next attempt; without a time, it keeps its own and this one is not counted."""
        entry = self.pending[id]
        entry = entry._replace(attempt=entry.attempt - 1) if due is None else entry._replace(due=due)
        self.pending[id] = entry
        return entry
