"""Collects what running handlers say, and keeps it at most four times a second, at no handler's cost.

Of an attempt's progress the latest counts. What cannot be written is dropped: no job waits for it, and none
fails for it.
"""

import json
import logging
import threading
import time
import uuid

import psycopg

from jobs import storable
from jobs.conf import settings
from jobs.errors import DatabaseAway
from jobs.lifecycle.reporting import Line, Progress, report
from jobs.queries import WorkerSession
from jobs.signals import ByWorker, Change, announce
from jobs.states import EventKind, Status

logger = logging.getLogger("dilamme.worker")

_KEPT = 5000  # lines between two writes
_INTERVAL = 0.25  # seconds between two writes
_PROCESSING = Status.PROCESSING.value


class Reports:
    """Safe to call from any thread. Its own thread begins with the first report."""

    def __init__(self, worker_id: uuid.UUID) -> None:
        self._worker_id = worker_id
        self._lock = threading.Lock()
        self._progress: dict[uuid.UUID, Progress] = {}
        self._lines: list[tuple[uuid.UUID, int, float, str]] = []
        self._something = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def progress(self, job_id: uuid.UUID, attempt: int, done: float, total: float | None, message: str) -> None:
        """Note how far an attempt is."""
        text = storable.text(message, 1000)
        value = json.dumps({"done": done, "total": total, "message": text}, allow_nan=False)
        with self._lock:
            self._progress[job_id] = Progress(job_id, attempt, value)
        self._wake()

    def log(self, job_id: uuid.UUID, attempt: int, text: str) -> None:
        """Note a line for the history."""
        with self._lock:
            if len(self._lines) < _KEPT:
                self._lines.append((job_id, attempt, time.monotonic(), text))
        self._wake()

    def stop(self) -> None:
        """Write what is left, and end the thread."""
        self._stopping.set()
        self._something.set()
        if self._thread is not None:
            self._thread.join(timeout=2)

    def _wake(self) -> None:
        if self._thread is None:
            with self._lock:
                if self._thread is None:
                    self._thread = threading.Thread(target=self._run, name="dilamme-reports", daemon=True)
                    self._thread.start()
        self._something.set()

    def _run(self) -> None:
        session = WorkerSession()
        while not self._stopping.is_set():
            self._something.wait()
            self._write(session)
            self._stopping.wait(_INTERVAL)
        self._write(session)
        session.close()

    def _write(self, session: WorkerSession) -> None:
        with self._lock:
            progress, self._progress = list(self._progress.values()), {}
            said, self._lines = self._lines, []
            self._something.clear()
        if not progress and not said:
            return
        now, limit = time.monotonic(), settings.MAX_ERROR_CHARACTERS
        lines = [Line(id_, attempt, now - at, storable.text(text, limit)) for id_, attempt, at, text in said]
        try:
            report(session, self._worker_id, progress, lines)
        except (DatabaseAway, psycopg.Error) as error:
            logger.warning("%s reports of handlers were not kept: %s", len(progress) + len(lines), error)
            session.close()
            return
        moved = {each.job_id: each.attempt for each in progress} | {line.job_id: line.attempt for line in lines}
        announce(ByWorker, [Change(id_, _PROCESSING, EventKind.LOGGED, attempt) for id_, attempt in moved.items()])
