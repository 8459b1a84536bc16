"""Takes spooled jobs to the database, in their order, as soon as it is back; one thread per process, while needed.

`keep` is durable when it returns. A job is forwarded under the id it was accepted with, so a forward that is repeated
after a crash stores nothing twice. While jobs wait, new ones of this process join them: they keep their order, and
nobody waits for a database that is known to be away. What belongs to processes that are gone is adopted.
"""

import json
import logging
import os
import random
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psycopg

from jobs.conf import settings
from jobs.errors import DatabaseAway
from jobs.queries import WorkerSession
from jobs.spool.files import SpoolFile
from jobs.spool.records import SpooledJob, Unreadable

logger = logging.getLogger("dilamme.spool")

KIND: Final = "jobs"
_BATCH: Final = 500  # jobs in one statement,
_BATCH_BYTES: Final = 4 * 1024 * 1024  # and about their size
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 2.0  # seconds between attempts while the database is away


@dataclass(frozen=True, slots=True)
class SpoolStatus:
    """What the spool of this process holds, and has done since the process began."""

    is_on: bool
    is_diverting: bool  # new jobs go to the spool, without a look at the database
    jobs: int
    size: int  # bytes
    limit: int  # bytes
    kept: int
    forwarded: int
    refused: int
    last_error: str


class Forwarder:
    """The spool of jobs of one process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._file: SpoolFile | None = None
        self._thread: threading.Thread | None = None
        self._kept = self._forwarded = self._refused = 0
        self._last_error = ""
        self._attends_at = 0.0  # on the monotonic clock
        self.is_diverting = False

    def keep(self, jobs: Mapping[uuid.UUID, bytes]) -> None:
        """Keep jobs, all or none, until the database has them; raises SpoolFull or SpoolFailed."""
        try:
            while not self._own_file().put(jobs):
                pass  # it was retired or broken in between: the next one is new
            with self._lock:
                self._kept += len(jobs)
                self.is_diverting = True
        finally:
            with self._lock:
                self._start()  # also after a refusal: an empty file is for it to remove

    def attend(self) -> None:
        """Look after what processes that are gone have left behind: now and then, and only with a spool."""
        now = time.monotonic()
        if not settings.SPOOL or now < self._attends_at:
            return
        self._attends_at = now + settings.SWEEP_INTERVAL
        if any(Path(settings.SPOOL).glob(f"{KIND}-*.spool")):
            with self._lock:
                self._start()

    def status(self) -> SpoolStatus:
        """Return how it is doing."""
        with self._lock:
            file = self._file
            return SpoolStatus(
                is_on=bool(settings.SPOOL),
                is_diverting=self.is_diverting,
                jobs=len(file) if file else 0,
                size=file.size if file else 0,
                limit=int(settings.SPOOL_LIMIT),
                kept=self._kept,
                forwarded=self._forwarded,
                refused=self._refused,
                last_error=self._last_error,
            )

    def _own_file(self) -> SpoolFile:
        with self._lock:
            if self._file is None or self._file.is_closed:
                self._file = SpoolFile.make(settings.SPOOL, KIND, int(settings.SPOOL_LIMIT))
            return self._file

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="dilamme-forwarder", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        """Forward until nothing of this process's own is left."""
        session = WorkerSession()
        pause = _FIRST_PAUSE
        while not (self._try_to_forward(session) and self._is_finished()):
            if self._last_error:
                session.close()
                time.sleep(pause * random.uniform(0.5, 1))  # noqa: S311  spreads the processes
                pause = min(2 * pause, _LONGEST_PAUSE)
        session.close()

    def _is_finished(self) -> bool:
        with self._lock:
            if self._file is not None and not self._file.retire():
                return False
            self._file = self._thread = None
            self.is_diverting = False
            return True

    def _try_to_forward(self, session: WorkerSession) -> bool:
        """Forward all there is; False if the database does not take it now."""
        try:
            for orphan in SpoolFile.orphans(settings.SPOOL, KIND):
                self._adopt(session, orphan)
            if self._file is not None:
                self._drain(session, self._file)
        except DatabaseAway as error:
            self._note(error)
        except Exception as error:  # noqa: BLE001  the thread must live as long as there is something to forward
            self.is_diverting = False  # whoever enqueues now is told by the database itself
            self._note(error, with_traceback=True)
        else:
            self._last_error = ""
        return not self._last_error

    def _note(self, error: Exception, *, with_traceback: bool = False) -> None:
        """Remember why it does not go on, and say it once."""
        if not self._last_error:
            logger.warning("Jobs wait in the spool: %s", error, exc_info=with_traceback)
        self._last_error = str(error) or repr(error)

    def _adopt(self, session: WorkerSession, orphan: SpoolFile) -> None:
        try:
            self._drain(session, orphan)
            orphan.retire()
        finally:
            orphan.abandon()

    def _drain(self, session: WorkerSession, file: SpoolFile) -> None:
        while batch := file.first(_BATCH, _BATCH_BYTES):
            self._forward(session, file, batch)
            file.remove(list(batch))

    def _forward(self, session: WorkerSession, file: SpoolFile, batch: Mapping[uuid.UUID, bytes]) -> None:
        """Store a batch; what the database can never take is set aside, and holds up no other."""
        try:
            _store(session, [SpooledJob.unpack(record) for record in batch.values()])
        except (Unreadable, psycopg.DataError, psycopg.IntegrityError) as error:
            if len(batch) == 1:
                self._set_aside(file, batch, error)
                return
            for key, record in batch.items():
                self._forward(session, file, {key: record})
            return
        self._forwarded += len(batch)

    def _set_aside(self, file: SpoolFile, batch: Mapping[uuid.UUID, bytes], error: Exception) -> None:
        """Write what was refused to a file for people, on disk before it leaves the spool."""
        path = file.path.parent / "refused.jsonl"
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with open(descriptor, "a", encoding="utf-8") as refused:  # noqa: PTH123  of a descriptor
            for record in batch.values():
                line = {"error": " ".join(str(error).split()), "record": record.decode(errors="replace")}
                refused.write(json.dumps(line) + "\n")
            refused.flush()
            os.fsync(refused.fileno())
        self._refused += len(batch)
        logger.error("A spooled job was refused by the database (%s); it is kept in %s.", error, path)


def _store(session: WorkerSession, jobs: Sequence[SpooledJob]) -> None:
    session.fetch(
        "forward",
        ids=[job.id for job in jobs],
        types=[job.type for job in jobs],
        queues=[job.queue for job in jobs],
        priorities=[job.priority for job in jobs],
        payloads=[job.payload for job in jobs],
        run_ats=[job.run_at for job in jobs],
        accepted_ats=[job.accepted_at for job in jobs],
        max_attempts=[job.max_attempts for job in jobs],
        horizon=settings.horizon,
    )


forwarder = Forwarder()
os.register_at_fork(after_in_child=forwarder.__init__)  # type: ignore[misc]  # the files are the parent's
