"""Tells those who watch what a worker's jobs did: after the commit, coalesced, and at nobody's cost.

A job that moves several times between two messages is told of once. When more moves than fit, watchers are told to
look for themselves. A message that cannot be sent is dropped and counted; no job waits for one.
"""

import logging
import threading
from collections.abc import Sequence
from typing import Any

import psycopg

from jobs.errors import DatabaseAway
from jobs.live.messages import encode
from jobs.queries import WorkerSession
from jobs.signals import ByWorker, Change, jobs_changed

logger = logging.getLogger("dilamme.live")

_INTERVAL = 0.25  # seconds between two messages
_KEPT = 1000  # changes kept between two messages; beyond that watchers are told to look


class Broadcaster(threading.Thread):
    """Collects changes from the signal and publishes them at most four times a second."""

    def __init__(self) -> None:
        super().__init__(name="dilamme-broadcast", daemon=True)
        self._lock = threading.Lock()
        self._changes: list[Change] = []
        self._overflowed = False
        self._something = threading.Event()
        self._stopping = threading.Event()
        self.dropped = 0

    def run(self) -> None:
        """Publish until stopped; what is left is published at the end."""
        jobs_changed.connect(self._collect, sender=ByWorker)
        session = WorkerSession()
        while not self._stopping.is_set():
            self._something.wait()
            self._publish(session)
            self._stopping.wait(_INTERVAL)
        jobs_changed.disconnect(self._collect, sender=ByWorker)
        self._publish(session)
        session.close()

    def stop(self) -> None:
        """End the thread and its connection."""
        self._stopping.set()
        self._something.set()

    def _collect(self, changes: Sequence[Change], **_: Any) -> None:
        with self._lock:
            if not self._overflowed:
                self._changes += changes
                self._overflowed = len(self._changes) > _KEPT
        self._something.set()

    def _publish(self, session: WorkerSession) -> None:
        with self._lock:
            overflowed, self._overflowed = self._overflowed, False
            changes, self._changes = [] if overflowed else self._changes, []
            self._something.clear()
        if not changes and not overflowed:
            return
        try:
            session.fetch("publish", messages=encode(changes, complete=not overflowed))
        except (DatabaseAway, psycopg.Error) as error:
            self.dropped += len(changes)
            logger.warning("%s changes were not shown live (%s in all): %s", len(changes), self.dropped, error)
            session.close()
