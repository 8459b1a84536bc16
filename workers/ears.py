"""What a worker hears: notifications, sorted and folded until the loop asks for them.

Polling would find all of it a little later; without ears (LISTEN off, or the connection lost) a worker is slower and
nothing else.
"""

import math
import threading
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field

from jobs.conf import settings
from jobs.lifecycle.frontier import Level
from jobs.listener import Listener
from jobs.queries import CONTROL_CHANNEL, WAKEUP_CHANNEL
from workers.wakeup import Wakeup


@dataclass(slots=True)
class Heard:
    """What has come since the last turn."""

    levels: dict[Level, float] = field(default_factory=dict)  # with new jobs, and from when on, in seconds since 1970
    due: bool = False  # some of them may run
    later: bool = False  # some of them may run soon
    missed: bool = False  # there may be work that was not heard of
    controls: bool = False  # somebody has paused or limited something, or let it go on
    series: bool = False  # somebody has changed one
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
                self._note_work(payload)
            else:
                self._note_control(payload)
        self._wakeup.set()

    def _note_work(self, payload: str) -> None:
        match payload.split(" "):
            case [queue, _, _, *_] if self._queues is not None and queue not in self._queues:
                return
            case [queue, priority, since, *rest] if _is_number(priority) and _is_number(since):
                level = (queue, float(priority))
                self._heard.levels[level] = min(float(since), self._heard.levels.get(level, math.inf))
                self._heard.later |= bool(rest)
                self._heard.due |= not rest
            case _:  # anybody with a connection can send anything, and so can another release
                self._heard.missed = True

    def _note_control(self, payload: str) -> None:
        word, _, argument = payload.partition(":")
        if word == "series":
            self._heard.series = True
        elif word == "queues":
            self._heard.controls = True
        elif word == "cancel":
            try:
                self._heard.cancelled.add(uuid.UUID(argument))
            except ValueError:
                return  # anybody with a connection can send anything

    def _connected(self) -> None:
        """Whatever was sent while nobody listened was missed: look for it."""
        with self._lock:
            self._heard.missed = self._heard.series = True
        self._wakeup.set()


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
