"""How runs ended that the database has not been told of: in memory, and with a spool on disk while it is away.

A worker that dies or stops during an outage leaves them behind, and the next worker on its machine reports them, behind
the fence: what was taken back and run again meanwhile is left alone.
"""

import logging
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from jobs import lifecycle
from jobs.claims import Ended
from jobs.conf import settings
from jobs.errors import SpoolFailed, SpoolFull
from jobs.lifecycle import Appetite
from jobs.lifecycle.recording import Recorded
from jobs.queries import Session
from jobs.spool.files import SpoolFile
from jobs.spool.records import SpooledOutcome, Unreadable

logger = logging.getLogger("dilamme.worker")

_KIND = "outcomes"
_BATCH = 500
_BATCH_BYTES = 16 * 1024 * 1024


class Unreported:
    """The outcomes of one worker, oldest first. Used by its loop only."""

    def __init__(self, worker_id: uuid.UUID) -> None:
        self._worker_id = worker_id
        self._ended: list[Ended] = []
        self._keys: list[uuid.UUID] = []  # of the records on disk: they are those of the first outcomes
        self._file: SpoolFile | None = None

    def __len__(self) -> int:
        return len(self._ended)

    def __iter__(self) -> Iterator[Ended]:
        return iter(self._ended)

    @property
    def are_on_disk(self) -> bool:
        """Whether every one of them outlives this process."""
        return len(self._keys) == len(self._ended)

    def add(self, ended: Sequence[Ended]) -> None:
        """Take in how runs have ended."""
        self._ended += ended

    def first(self, count: int) -> list[Ended]:
        """Return the oldest."""
        return self._ended[:count]

    def forget(self, count: int) -> None:
        """Let go of the oldest: the database knows them."""
        del self._ended[:count]
        if self._file is not None:
            self._file.remove(self._keys[:count])
            del self._keys[:count]
            if self._file.retire():
                self._file = None

    def secure(self) -> None:
        """Put on disk what is in memory only. Without a spool, or if it refuses, memory is all there is."""
        fresh = self._ended[len(self._keys) :]
        if not (settings.SPOOL and fresh):
            return
        records = {uuid.uuid4(): SpooledOutcome(self._worker_id, end).pack() for end in fresh}
        try:
            if self._file is None:
                self._file = SpoolFile.make(settings.SPOOL, _KIND, int(settings.SPOOL_LIMIT))
            if self._file.put(records):
                self._keys += records
        except (SpoolFull, SpoolFailed) as error:
            logger.warning("%s outcomes are kept in memory only: %s", len(fresh), error)

    def close(self) -> None:
        """Leave what is on disk to the next worker."""
        if self._file is not None:
            self._file.abandon()


def adopt(session: Session) -> Iterator[Recorded]:
    """Report what workers that are gone could not; yields what was written, and what came too late.

    Raises `DatabaseAway` or psycopg's errors; what was not reported stays on disk.
    """
    for orphan in SpoolFile.orphans(settings.SPOOL, _KIND) if settings.SPOOL else ():
        try:
            while batch := orphan.first(_BATCH, _BATCH_BYTES):
                for worker_id, ended in _by_worker(batch.values()).items():
                    yield lifecycle.exchange(session, Appetite(worker_id), ended, 0).recorded
                orphan.remove(list(batch))
            orphan.retire()
        finally:
            orphan.abandon()


def _by_worker(records: Iterable[bytes]) -> dict[uuid.UUID, list[Ended]]:
    outcomes: defaultdict[uuid.UUID, list[Ended]] = defaultdict(list)
    for record in records:
        try:
            spooled = SpooledOutcome.unpack(record)
        except Unreadable as error:
            logger.error("A spooled outcome is given up, its job will be rescued: %s", error)  # noqa: TRY400
            continue
        outcomes[spooled.worker_id].append(spooled.ended)
    return outcomes
