"""What a worker hears: notifications, sorted and folded until the loop asks for them.

Polling would find all of it a little later; without ears (LISTEN off, or the connection lost) a worker is slower and
nothing else.
"""

import threading
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field

from jobs.conf import settings
from jobs.listener import Listener
from jobs.queries import CONTROL_CHANNEL, WAKEUP_CHANNEL
from workers.wakeup import Wakeup


@dataclass(slots=True)
class Heard:
    """What has come since the last turn."""

    work: bool = False  # jobs that are due
    later: bool = False  # jobs that will be due soon
    cancelled: set[uuid.UUID] = field(default_factory=set)


class Ears:
    """Listens on a thread of its own and wakes the loop."""

    def __init__(self, queues: Sequence[str] | None, wakeup: Wakeup) -> None:
        self._queues = queues
        self._wakeup = wakeup
        self._lock = threading.Lock()
        self._heard = Heard()
        self._listener = Listener([WAKEUP_CHANNEL, CONTROL_CHANNEL], self._hear, self._connected)

    @property
    def is_open(self) -> bool:
        """Whether notifications arrive."""
        return self._listener.is_listening

    def start(self) -> None:
        """Begin to listen, if the settings want it."""
        if settings.LISTEN:
            self._listener.start()

    def stop(self) -> None:
        """Stop listening."""
        self._listener.stop()

    def join(self, timeout: float) -> None:
        """Wait for the thread to end."""
        if self._listener.is_alive():
            self._listener.join(timeout)

    def take(self) -> Heard:
        """Return what was heard since the last call."""
        with self._lock:
            heard, self._heard = self._heard, Heard()
        return heard

    def _hear(self, channel: str, payload: str) -> None:
        with self._lock:
            if channel == WAKEUP_CHANNEL:
                queue, _, later = payload.partition("@")
                if self._queues is not None and queue not in self._queues:
                    return
                self._heard.later |= bool(later)
                self._heard.work |= not later
            else:
                self._note_control(payload)
        self._wakeup.set()

    def _note_control(self, payload: str) -> None:
        word, _, argument = payload.partition(":")
        if word == "cancel":
            try:
                self._heard.cancelled.add(uuid.UUID(argument))
            except ValueError:
                return  # anybody with a connection can send anything

    def _connected(self) -> None:
        """Whatever was sent while nobody listened was missed: look for it."""
        with self._lock:
            self._heard.work = self._heard.later = True
        self._wakeup.set()
