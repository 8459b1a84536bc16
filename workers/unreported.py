"""How runs ended that the database has not been told of: in memory, and with a spool on disk while it is away.

A worker that dies or stops during an outage leaves them behind, and the next worker on its machine reports them, behind
the fence: what was taken back and run again meanwhile is left alone.
"""

import itertools
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
    """The outcomes of one worker, oldest first: those that wait, and those under way. Used by its loop only."""

    def __init__(self, worker_id: uuid.UUID) -> None:
        self._worker_id = worker_id
        self._waiting: list[Ended] = []
        self._under_way: list[list[Ended]] = []
        self._keys: dict[tuple[uuid.UUID, int], uuid.UUID] = {}  # of the records on disk, by job and attempt
        self._file: SpoolFile | None = None

    def __len__(self) -> int:
        return len(self._waiting) + sum(map(len, self._under_way))

    def __iter__(self) -> Iterator[Ended]:
        return itertools.chain(*self._under_way, self._waiting)

    @property
    def waiting(self) -> int:
        """How many are not under way."""
        return len(self._waiting)

    @property
    def are_on_disk(self) -> bool:
        """Whether every one of them outlives this process."""
        return len(self._keys) == len(self)

    def add(self, ended: Sequence[Ended]) -> None:
        """Take in how runs have ended."""
        self._waiting += ended

    def take(self, count: int) -> list[Ended]:
        """Return the oldest that wait, which are under way from now on."""
        batch, self._waiting = self._waiting[:count], self._waiting[count:]
        self._under_way.append(batch)
        return batch

    def forget(self, batch: list[Ended]) -> None:
        """Let go of what was taken: the database knows it."""
        self._no_longer_under_way(batch)
        if self._file is not None:
            keys = [self._keys.pop(_key(end), None) for end in batch]
            self._file.remove([key for key in keys if key is not None])
            if self._file.retire():
                self._file = None

    def put_back(self, batch: list[Ended]) -> None:
        """Have what was taken wait again, before all others."""
        self._no_longer_under_way(batch)
        self._waiting[:0] = batch

    def _no_longer_under_way(self, batch: list[Ended]) -> None:
        self._under_way = [other for other in self._under_way if other is not batch]

    def secure(self) -> None:
        """Put on disk what is in memory only. Without a spool, or if it refuses, memory is all there is."""
        fresh = [end for end in self if _key(end) not in self._keys] if settings.SPOOL else []
        if not fresh:
            return
        keys = {uuid.uuid4(): end for end in fresh}
        records = {key: SpooledOutcome(self._worker_id, end).pack() for key, end in keys.items()}
        try:
            if self._file is None:
                self._file = SpoolFile.make(settings.SPOOL, _KIND, int(settings.SPOOL_LIMIT))
            if self._file.put(records):
                self._keys |= {_key(end): key for key, end in keys.items()}
        except (SpoolFull, SpoolFailed) as error:
            logger.warning("%s outcomes are kept in memory only: %s", len(fresh), error)

    def close(self) -> None:
        """Leave what is on disk to the next worker."""
        if self._file is not None:
            self._file.abandon()


def _key(end: Ended) -> tuple[uuid.UUID, int]:
    return end.claim.id, end.claim.attempt


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
