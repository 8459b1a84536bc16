"""Owns one journal file on disk: making it whole, examining it, and adding to its durable end.

It never decides what to do about a failure or about damage; the journal does. Positions are byte offsets. A frame
is written at the end and counts only from `accept` on, after its fsync. Making a file is O(bytes) and one fsync,
a frame is one write and one fsync, examining reads the file once. Source: Mohan et al., "ARIES", TODS 17(1), 1992,
for the rule that a log record is on disk before what it describes is acknowledged; Pillai et al., "All File Systems
Are Not Created Equal", OSDI 2014, for what has to be synced, and in which order.
"""

import fcntl
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple, Self

from scheduling.frames import FRAME_SIZE, HEADER_SIZE, Header, Reader, pack_groups, unpack_records

_BUFFER: Final = 2**20
_PRIVATE: Final = 0o600
"""Payloads may be confidential: only the owner reads them."""


class Damage(NamedTuple):
    """From `offset` on, for `size` bytes up to the end of the file, there is something other than whole frames.

    torn: whether a crash in the middle of the last, unacknowledged write explains it.
    reason: a clause that says what is wrong.
    """

    offset: int
    size: int
    torn: bool
    reason: str


class Examination(NamedTuple):
    """What a file holds: its header, where its good frames end, and what is wrong behind them, if anything."""

    header: Header
    end: int
    damage: Damage | None


def examine(path: Path) -> Examination:
    """Check every frame of a file. Raises BadHeader, and OSError when it cannot be read."""
    with path.open("rb", buffering=_BUFFER) as file:
        header = Header.unpack(file.read(HEADER_SIZE))
        size = os.fstat(file.fileno()).st_size
        reader = Reader(file, header, size)
        for _ in reader:
            pass
        return Examination(header, reader.position, _damage(reader, header, size))


def _damage(reader: Reader, header: Header, size: int) -> Damage | None:
    """Tell a torn tail, which a crash leaves, from damage to what had been on disk.

    A frame is written only after the frame before it has been synced. So at most the last one can be incomplete
    after a crash, and a whole frame behind a bad one proves that the bad one was whole, too.
    """
    offset = reader.position
    if offset < header.snapshot_end:
        return Damage(offset, size - offset, torn=False, reason=f"it was whole up to byte {header.snapshot_end}")
    if offset == size:
        return None
    resumed = reader.resume()
    if resumed is not None:
        return Damage(offset, size - offset, torn=False, reason=f"a whole frame follows at byte {resumed}")
    return Damage(offset, size - offset, torn=True, reason="the last frame is not whole")


def read(path: Path, end: int | None = None) -> Iterator[bytes]:
    """Yield the records of a file in their order, up to the offset `end` or the first frame that is not whole.

    It takes no lock and changes nothing. Raises BadHeader, and OSError when the file cannot be read.
    """
    with path.open("rb", buffering=_BUFFER) as file:
        header = Header.unpack(file.read(HEADER_SIZE))
        for payload in Reader(file, header, os.fstat(file.fileno()).st_size if end is None else end):
            yield from unpack_records(payload)


def sync(descriptor: int) -> None:
    """Return when what was written is on the disk itself. Raises OSError when that is not known."""
    if sys.platform == "darwin":
        # There fsync hands the data to the drive, which may keep it in its cache.
        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
    else:
        os.fsync(descriptor)


def sync_directory(path: Path) -> None:
    """Make the names in a directory as durable as the files behind them."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        sync(descriptor)
    finally:
        os.close(descriptor)


class LogFile:
    """A file open for writing at its `end`, the offset up to which everything is whole and on disk."""

    def __init__(self, descriptor: int, header: Header, end: int) -> None:
        self.header = header
        self.end = end
        self._descriptor = descriptor

    @classmethod
    def create(cls, path: Path, base: int, records: Iterable[bytes]) -> Self:
        """Make a file with these records, on disk when this returns; only its name may not be.

        Raises OSError when it cannot be written; the caller removes what there is of it.
        """
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, _PRIVATE)
        file = cls(descriptor, Header.new(base), HEADER_SIZE)
        try:
            for payload in pack_groups(records):
                file.accept(file.write(payload))
            file.header = file.header._replace(snapshot_end=file.end)
            file._write(file.header.pack(), 0)
            sync(descriptor)
        except BaseException:
            file.close()
            raise
        return file

    @classmethod
    def open(cls, path: Path, found: Examination) -> Self:
        """Open an examined file, cut what lies behind its good frames, and make sure that these are on disk.

        A frame that was written, but not synced when its process died, is whole in the cache of the operating
        system; whoever acts on it must not be the only one who ever sees it. Raises OSError.
        """
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        file = cls(descriptor, found.header, found.end)
        try:
            if found.damage is not None:
                file.cut()
            sync(descriptor)
        except BaseException:
            file.close()
            raise
        return file

    def write(self, payload: bytes) -> int:
        """Write a frame behind the end and return its size in bytes. Raises OSError when not all was written."""
        frame = self.header.frame(payload, self.end)
        self._write(frame, self.end)
        return len(frame)

    def sync(self) -> None:
        """Return when what was written is on disk. Raises OSError, after which nobody knows what is."""
        sync(self._descriptor)

    def accept(self, size: int) -> int:
        """Let `size` bytes behind the end count, and return the log sequence number of their payload."""
        lsn = self.header.lsn_at(self.end) + FRAME_SIZE
        self.end += size
        return lsn

    def cut(self) -> None:
        """Remove what was written behind the end. Raises OSError."""
        os.ftruncate(self._descriptor, self.end)

    def close(self) -> None:
        """Give the file back to the operating system."""
        os.close(self._descriptor)

    def _write(self, data: bytes, offset: int) -> None:
        left = memoryview(data)
        while left:
            # A disk that fills up takes a part and refuses the rest: the error comes with the next call.
            written = os.pwrite(self._descriptor, left, offset)
            left, offset = left[written:], offset + written
