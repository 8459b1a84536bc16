"""Owns the files of the spool: queues on disk, each written by one process and adopted by another if that one is gone.

It never looks into what is kept. A file lives as long as there is something in it. The lock of its journal says
whether its process is alive, so an adopter needs no clock and no registry; two adopters that meet do no harm, because
whoever reads a file sends what can be sent twice.
"""

import logging
import os
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final, Self

from jobs.errors import SpoolFailed, SpoolFull
from scheduling import Journal, JournalClosed, JournalError, JournalLocked, JournalPoisoned
from scheduling.lockfile import beside

logger = logging.getLogger("dilamme.spool")

_SUFFIX: Final = ".spool"
_KEPT, _GONE = b"+", b"-"
_KEY: Final = 16  # bytes of a UUID
_SLACK: Final = 1024 * 1024  # bytes that a file may have beyond twice what it keeps, before it is written anew


class SpoolFile:
    """A queue on disk: what is put in stays until it is taken out, whatever becomes of the process. Thread-safe.

    Raises SpoolFailed when the file cannot be made or read, JournalLocked when another process has it.
    """

    def __init__(self, path: Path, limit: int) -> None:
        self.path = path
        self._limit = limit  # bytes kept
        self._lock = threading.Lock()
        self._kept: dict[uuid.UUID, bytes] = {}
        self._bytes = 0  # kept, or on their way to the disk
        self._puts = 0  # under way
        self._is_closed = False
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._journal = Journal(path)
            self._replay()
        except JournalLocked:
            raise
        except (JournalError, OSError) as error:
            raise SpoolFailed(f"The spool {path} cannot be used: {error}") from error

    @classmethod
    def make(cls, directory: str, kind: str, limit: int) -> Self:
        """Make a new file, for `kind` of records."""
        return cls(Path(directory) / f"{kind}-{os.getpid()}-{uuid.uuid4().hex}{_SUFFIX}", limit)

    @classmethod
    def orphans(cls, directory: str, kind: str) -> Iterator[Self]:
        """Open every file of `kind` whose process is gone, the oldest first; one that is damaged is left alone."""
        for path in sorted(Path(directory).glob(f"{kind}-*{_SUFFIX}"), key=_age):
            try:
                yield cls(path, 0)
            except JournalLocked:
                continue
            except SpoolFailed as error:
                logger.error("%s", error)  # noqa: TRY400  the text says it all

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def is_closed(self) -> bool:
        """Whether it takes nothing any more."""
        return self._is_closed

    @property
    def size(self) -> int:
        """How many bytes are kept."""
        return self._bytes

    def put(self, records: Mapping[uuid.UUID, bytes]) -> bool:
        """Keep records, all or none; they are on disk when this returns True. False: take another file.

        Raises SpoolFull, or SpoolFailed when the disk refuses.
        """
        size = sum(map(len, records.values()))
        with self._lock:
            if self._is_closed:
                return False
            if self._bytes + size > self._limit:
                raise SpoolFull(len(self._kept), self._bytes, self._limit)
            self._bytes += size
            self._puts += 1
        is_kept = False
        try:
            self._journal.append_many([_KEPT + key.bytes + record for key, record in records.items()])
            is_kept = True
        except (JournalPoisoned, JournalClosed):
            self.abandon()  # what it acknowledged is safe, and is adopted; another file takes this
        except JournalError as error:
            raise SpoolFailed(f"The spool {self.path} cannot be written: {error}") from error
        finally:
            with self._lock:
                self._puts -= 1
                self._bytes -= 0 if is_kept else size
                self._kept.update(records if is_kept else {})
        return is_kept

    def first(self, count: int, size: int) -> dict[uuid.UUID, bytes]:
        """Return up to `count` records of together about `size` bytes at most, oldest first; one at least, if any."""
        found: dict[uuid.UUID, bytes] = {}
        with self._lock:
            for key, record in islice(self._kept.items(), count):
                if found and size < len(record):
                    break
                size -= len(record)
                found[key] = record
        return found

    def remove(self, keys: Sequence[uuid.UUID]) -> None:
        """Take records out. If the disk refuses to note that, they come back after a crash: they can be sent twice."""
        with self._lock, suppress(JournalError):
            self._bytes -= sum(len(self._kept.pop(key)) for key in keys)
            if not self._puts and self._journal.metrics().size > _SLACK + 2 * self._bytes:
                self._journal.snapshot([_KEPT + key.bytes + record for key, record in self._kept.items()])
                return
        with suppress(JournalError):
            self._journal.append(_GONE + b"".join(key.bytes for key in keys))

    def retire(self) -> bool:
        """Delete the file if nothing is in it, and tell whether it is gone; from then on `put` returns False."""
        with self._lock:
            if self._kept or self._puts:
                return False
            self._is_closed = True
            with suppress(OSError):
                self.path.unlink(missing_ok=True)
                beside(self.path).unlink(missing_ok=True)
            self._journal.close()
        return True

    def abandon(self) -> None:
        """Close the file with all that is in it: whoever comes next adopts it."""
        with self._lock:
            self._is_closed = True
            self._journal.close()

    def _replay(self) -> None:
        for entry in self._journal.replay():
            if entry[:1] == _KEPT:
                self._kept[uuid.UUID(bytes=entry[1 : 1 + _KEY])] = entry[1 + _KEY :]
            else:
                for start in range(1, len(entry), _KEY):
                    self._kept.pop(uuid.UUID(bytes=entry[start : start + _KEY]), None)
        self._bytes = sum(map(len, self._kept.values()))


def _age(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0  # another process has just retired it
