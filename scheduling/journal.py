"""Owns a write-ahead log of records: durable before it is acknowledged, readable after any crash.

It never looks into a record, starts a thread or reads a clock. Whoever appends while an fsync is under way joins
the next group, which is one frame, one write and one fsync for all who wait: the disk's own latency makes the
batches, with no timer. An append costs its share of one fsync, opening costs reading the file once, a snapshot costs
writing what it is given. Source: Mohan et al., "ARIES", TODS 17(1), 1992; group commit as in Gray and Reuter,
"Transaction Processing", 1993, 9.4; no second fsync after a failed one, Rebello et al., "Can Applications Recover
from fsync Failures?", ATC 2020. The format, and what is guaranteed, are in `docs/journal.md`.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

from scheduling import lockfile
from scheduling.frames import GROUP, MAX_FRAME, MAX_RECORD, BadHeader, pack_record
from scheduling.group import GroupCommit
from scheduling.logfile import Examination, LogFile, examine, read, sync_directory


class JournalError(Exception):
    """Something is wrong with a journal; the text says what, where, and the way out."""


class JournalLocked(JournalError):
    """Another journal object, here or in another process, has the file open."""


class JournalCorrupt(JournalError):
    """What was on disk has changed, which no crash explains; `offset` is where, in bytes."""

    def __init__(self, text: str, offset: int) -> None:
        super().__init__(text)
        self.offset = offset


class JournalWriteFailed(JournalError):
    """A write was refused, as by a full disk. Nothing of it was kept; the journal can still be used."""


class JournalPoisoned(JournalError):
    """An fsync has failed or a file was half replaced: what is on disk is not known until the journal is reopened."""


class JournalClosed(JournalError):
    """The journal was closed, or belongs to the process that this one was forked from."""


class RecordTooLarge(JournalError):
    """A record is larger than `frames.MAX_RECORD`, or an `append_many` than `frames.MAX_FRAME`."""


class TornTail(NamedTuple):
    """What was cut when a journal was opened: `size` bytes from `offset` on, never acknowledged to anybody."""

    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class JournalMetrics:
    """How large the journal is, and what it has done since it was opened.

    size: bytes of the file. snapshot_size: bytes of it that are the last snapshot. appends: records acknowledged.
    fsyncs: syncs that made them durable, without those of opening and of snapshots. snapshots: how many were taken.
    """

    size: int
    snapshot_size: int
    appends: int
    fsyncs: int
    snapshots: int

    @property
    def records_per_fsync(self) -> float:
        """How many records share an fsync on average; 0 before the first."""
        return self.appends / self.fsyncs if self.fsyncs else 0.0


class Journal:
    """An append-only file of records (bytes), open in one place at a time; safe to use from many threads.

    path: where it is, or will be made; beside it lie `path.lock` and, during a snapshot, `path.tmp`. The file system
        must be a local one that keeps its promises about fsync, rename and flock.
    torn: what was cut from the end on opening, or None.

    Raises JournalLocked when it is open elsewhere, JournalCorrupt when it is damaged, OSError when it cannot be read.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        # Resolved, so that all names of one file share one lock and a rename does not replace a symbolic link.
        self.path: Final = Path(os.path.realpath(path))
        self.torn: TornTail | None = None
        self._group = GroupCommit(self._commit, GROUP)
        self._pid = os.getpid()
        self._poison: BaseException | None = None
        self._appends = self._fsyncs = self._snapshots = 0
        try:
            self._lock: int | None = lockfile.acquire(self.path)
        except lockfile.Held as held:
            raise JournalLocked(
                f"Journal {self.path} is open already, in process {held.holder}: only one may use it at a time."
            ) from None
        try:
            self._file = self._open()
        except BaseException:
            os.close(self._lock)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def append(self, record: bytes) -> int:
        """Append a record and return its log sequence number, once it is on disk.

        The number is the record's place in bytes since the journal was first made; it grows from record to record,
        across snapshots and restarts. Raises RecordTooLarge, JournalWriteFailed or JournalClosed, and then the record
        is not in the journal. JournalPoisoned, and what a signal handler throws into the call, leave that open.
        """
        return self.append_many((record,))[0]

    def append_many(self, records: Sequence[bytes]) -> list[int]:
        """Append records that are all in the journal after a crash, or none of them; else like `append`."""
        packed = [pack_record(record) for record in records]
        if not packed:
            return []
        sizes = [len(part) for part in packed]
        largest = max(map(len, records))
        if largest > MAX_RECORD or sum(sizes) > MAX_FRAME:
            raise RecordTooLarge(
                f"The largest record has {largest} bytes and all have {sum(sizes)}: the limits are {MAX_RECORD} and "
                f"{MAX_FRAME} at once. Append fewer, or a reference to what is large."
            )
        first = self._group.submit(b"".join(packed), len(packed))
        return list(accumulate(sizes[:-1], initial=first))

    def replay(self) -> Iterator[bytes]:
        """Yield every durable record, the oldest first, as of the first one asked for. O(bytes)."""
        with self._group.commits:
            end = self._usable().end
            records = read(self.path, end)
            first = next(records, None)
        if first is not None:
            yield first
            yield from records

    def snapshot(self, records: Iterable[bytes]) -> None:
        """Replace everything in the journal by these records, which say the same in less space.

        Appends wait meanwhile, and follow it. The caller sees to it that the records contain the effect of all that
        was acknowledged before. Whenever a crash comes, either the old content or the new is there. Raises
        JournalWriteFailed, and then the old is kept and goes on, or JournalPoisoned.
        """
        with self._group.commits:
            old = self._usable()
            try:
                new = LogFile.create(self._tmp, old.header.lsn_at(old.end), records)
            except OSError as error:
                self._discard_tmp()
                raise JournalWriteFailed(f"No snapshot of {self.path}: {error}. The old content is kept.") from error
            except BaseException:
                self._discard_tmp()
                raise
            self._replace_by(new)
            old.close()
            self._snapshots += 1

    def metrics(self) -> JournalMetrics:
        """Return size and counts; consistent when no append is under way."""
        file = self._file
        return JournalMetrics(file.end, file.header.snapshot_end, self._appends, self._fsyncs, self._snapshots)

    def close(self) -> None:
        """Let an fsync under way end, refuse what comes later, and release the lock. May be called again."""
        with self._group.commits:
            if self._lock is not None:
                self._file.close()
                os.close(self._lock)
                self._lock = None

    def _commit(self, payload: bytes, count: int) -> int:
        """Make a frame durable and return where its payload begins; what fails leaves nothing behind."""
        file = self._usable()
        try:
            size = self._write(file, payload)
            self._sync(file)
        except BaseException:
            self._take_back(file)
            raise
        self._fsyncs += 1
        self._appends += count
        return file.accept(size)

    def _write(self, file: LogFile, payload: bytes) -> int:
        try:
            return file.write(payload)
        except OSError as error:
            raise JournalWriteFailed(
                f"Journal {self.path} was refused a write of {len(payload)} bytes: {error}. Nothing of it was kept: "
                f"make room and append again."
            ) from error

    def _sync(self, file: LogFile) -> None:
        try:
            file.sync()
        except OSError as error:
            # The kernel may have dropped the pages and marked them clean: a second fsync would succeed, and lie.
            self._poison = error
            self._usable()

    def _take_back(self, file: LogFile) -> None:
        """Remove what was written and will not be acknowledged; if it stays, nothing may be written behind it."""
        try:
            file.cut()
        except OSError as error:
            self._poison = self._poison or error
            self._usable()

    def _usable(self) -> LogFile:
        if self._lock is None:
            raise JournalClosed(f"Journal {self.path} is closed: open it again.")
        if self._pid != os.getpid():
            raise JournalClosed(f"Journal {self.path} belongs to process {self._pid}, not to its fork {os.getpid()}.")
        if self._poison is not None:
            raise JournalPoisoned(
                f"Journal {self.path} cannot tell what is on disk since this failed: {self._poison}. What was "
                f"acknowledged before is safe; nothing else is accepted. Look at the disk, then open it again."
            ) from self._poison
        return self._file

    @property
    def _tmp(self) -> Path:
        return self.path.with_name(self.path.name + ".tmp")

    def _discard_tmp(self) -> None:
        # What cannot be removed now is removed by the next opening, and must not hide why there is no snapshot.
        with suppress(OSError):
            self._tmp.unlink()

    def _open(self) -> LogFile:
        """Clean up after a snapshot that was not finished, then open the file or make an empty one."""
        self._tmp.unlink(missing_ok=True)
        if not self.path.exists():
            self._replace_by(LogFile.create(self._tmp, 0, ()))
            return self._file
        found = checked(self.path)
        if found.damage is not None:
            if not found.damage.torn:
                raise JournalCorrupt(
                    f"Journal {self.path} is damaged at byte {found.damage.offset}: {found.damage.reason}. Restore a "
                    f"backup, or run `python -m scheduling repair {self.path}`: it keeps a copy and cuts it there.",
                    found.damage.offset,
                )
            self.torn = TornTail(found.damage.offset, found.damage.size)
        return LogFile.open(self.path, found)

    def _replace_by(self, new: LogFile) -> None:
        """Give a finished file the journal's name. A failure in between leaves open which file a crash would leave."""
        try:
            self._tmp.replace(self.path)
            sync_directory(self.path.parent)
            self._file = new
        except BaseException as error:
            self._poison = error
            new.close()
            raise JournalPoisoned(f"Journal {self.path} was half replaced: {error}. Open it again.") from error


def checked(path: Path) -> Examination:
    """Examine a file without opening it for use. Raises JournalCorrupt when not even its header is good."""
    try:
        return examine(path)
    except BadHeader as error:
        raise JournalCorrupt(f"{path} is no journal, or a damaged one: {error}. Restore a backup.", 0) from error
