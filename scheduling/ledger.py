"""Owns the durable side of the delayed scheduler: its journal, what the journal adds up to, and when it is shrunk.

It never decides what happens to an entry, and knows no times. A change is one append; a snapshot is due when the
journal has grown to several times its last one, so each byte is rewritten O(1) times on average, and the file stays
proportional to what is pending. Opening is O(records since the last snapshot + entries in it). Source: checkpoints
as in Mohan et al., "ARIES", TODS 17(1), 1992, but of the whole state and with changes kept out meanwhile, which is
simpler and costs O(pending) each time.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from typing import Final

from scheduling.entries import Book
from scheduling.gate import Gate
from scheduling.journal import Journal, JournalError

_MEBIBYTE: Final = 2**20
_GROWTH: Final = 4


class Ledger:
    """A book and the journal that it can be read from again.

    book: changed by whoever calls `append`, inside `changing`. torn: what was cut from the journal on opening, or None.
    recovered: records read on opening. snapshot_failures: snapshots that were due and could not be taken.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.book: Final = Book()
        self.recovered = 0
        self.snapshot_failures = 0
        self._gate = Gate()
        self._journal = Journal(path)
        self.torn: Final = self._journal.torn
        self.metrics: Final = self._journal.metrics
        self._snapshot_at = self._next_snapshot_size()
        try:
            self._recover()
        except BaseException:
            self._journal.close()
            raise

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Keep snapshots out while a change is made durable and takes effect; take one afterwards if it is due."""
        with self._gate.shared():
            yield
        if self.metrics().size > self._snapshot_at:
            self._snapshot_if_due()

    def append(self, record: bytes) -> None:
        """Return when a change is on disk. Raises JournalError."""
        self._journal.append(record)

    def snapshot(self) -> None:
        """Shrink the journal to what the book says. Raises as `Journal.snapshot`."""
        with self._gate.exclusive():
            self._snapshot()

    def close(self) -> None:
        """Close the journal when the changes under way have ended."""
        with self._gate.exclusive():
            self._journal.close()

    def _recover(self) -> None:
        try:
            for record in self._journal.replay():
                self.book.apply(record)
                self.recovered += 1
        except ValueError as error:
            raise JournalError(f"Journal {self._journal.path} is not that of a delayed scheduler: {error}") from error

    def _snapshot_if_due(self) -> None:
        with self._gate.exclusive():
            # Asked again: several threads may have seen that it was due.
            if self.metrics().size <= self._snapshot_at:
                return
            try:
                self._snapshot()
            except JournalError:
                # The change that brought us here is on disk and must not look as if it had failed. A journal that
                # is unusable now says so at the next change.
                self.snapshot_failures += 1
                self._snapshot_at = self.metrics().size + _MEBIBYTE

    def _snapshot(self) -> None:
        self._journal.snapshot(self.book.records())
        self._snapshot_at = self._next_snapshot_size()

    def _next_snapshot_size(self) -> int:
        return max(_MEBIBYTE, _GROWTH * self.metrics().snapshot_size)
