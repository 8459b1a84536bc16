"""Keeps a worker's lease alive, from a thread and a connection that no handler and no exchange can hold up."""

import logging
import threading

import psycopg

from jobs import lifecycle
from jobs.conf import settings
from jobs.errors import DatabaseAway
from jobs.lifecycle import Presence
from jobs.queries import WorkerSession

logger = logging.getLogger("dilamme.worker")

_BEATS_PER_LEASE = 5  # so that several may fail before the lease is lost


class Heartbeat(threading.Thread):
    """Renews the lease of `presence` until stopped."""

    def __init__(self, presence: Presence) -> None:
        super().__init__(name="dilamme-heartbeat", daemon=True)
        self._presence = presence
        self._stopping = threading.Event()

    def run(self) -> None:
        """Beat; a beat that fails is tried again soon, for the lease is running out."""
        session = WorkerSession()
        while not self._stopping.wait(self._beat(session)):
            pass
        session.close()

    def stop(self) -> None:
        """End the thread and its connection."""
        self._stopping.set()

    def _beat(self, session: WorkerSession) -> float:
        """Beat once and return the seconds until the next one."""
        interval: float = settings.LEASE / _BEATS_PER_LEASE
        try:
            lifecycle.beat(session, self._presence)
        except (DatabaseAway, psycopg.Error) as error:
            logger.warning("A heartbeat failed, the next one follows soon: %s", error)
            session.close()
            return min(1.0, interval)
        return interval
