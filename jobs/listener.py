"""A supervised LISTEN connection: one thread that hears notifications and never gives up.

A lost connection is noticed by an error, by the end of the stream, or by a probe; then it reconnects with a capped
delay, listens again, and says so, because whatever was sent in between was missed. Hearing is a convenience: nobody
may depend on it for correctness.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence

import psycopg
from psycopg import sql

from jobs.conf import settings
from jobs.pipeline import Row
from jobs.queries import connect, load

logger = logging.getLogger("dilamme.listener")

_PROBE_AFTER = 10.0  # seconds of silence after which the connection is asked whether it lives
_STOP_WITHIN = 0.5  # seconds until a stop is noticed
_FIRST_DELAY, _LONGEST_DELAY = 0.1, 5.0


class Listener(threading.Thread):
    """Calls `hear(channel, payload)` for each notification, and `connected()` after each (re)connect, on its thread."""

    def __init__(
        self, channels: Sequence[str], hear: Callable[[str, str], None], connected: Callable[[], None]
    ) -> None:
        super().__init__(name="dilamme-listener", daemon=True)
        self._channels = channels
        self._hear = hear
        self._connected = connected
        self._stopping = threading.Event()
        self.is_listening = False

    def run(self) -> None:
        """Listen until stopped, across any number of lost connections."""
        delay = _FIRST_DELAY
        while not self._stopping.is_set():
            try:
                with connect(settings.LISTEN_URL) as connection:
                    self._subscribe(connection)
                    delay = _FIRST_DELAY
                    self._listen(connection)
            except psycopg.Error as error:
                logger.warning(
                    "Notifications are lost, listening again in %.1f s: %s", delay, " ".join(str(error).split())
                )
            finally:
                self.is_listening = False
            self._stopping.wait(delay)
            delay = min(delay * 2, _LONGEST_DELAY)

    def stop(self) -> None:
        """End the thread and its connection, within half a second."""
        self._stopping.set()

    def _subscribe(self, connection: psycopg.Connection[Row]) -> None:
        for channel in self._channels:
            connection.execute(sql.SQL("listen {}").format(sql.Identifier(channel)))
        self.is_listening = True
        self._connected()

    def _listen(self, connection: psycopg.Connection[Row]) -> None:
        heard = time.monotonic()
        while not self._stopping.is_set():
            for notification in connection.notifies(timeout=_STOP_WITHIN):
                heard = time.monotonic()
                self._hear(notification.channel, notification.payload)
                if self._stopping.is_set():
                    return
            if time.monotonic() - heard > _PROBE_AFTER:
                connection.execute(load("ping"))
                heard = time.monotonic()
