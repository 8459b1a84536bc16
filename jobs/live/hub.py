"""One ear and one voice per web process: hears what moved, folds it, and tells the sockets of this process.

It reads no job and knows no user. The folding happens on the listener's thread, everything else on the server's loop.
"""

import asyncio
import logging
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

from channels.layers import get_channel_layer

from jobs.conf import settings
from jobs.listener import Listener
from jobs.live.messages import KEPT, decode
from jobs.queries import LIVE_CHANNEL, WAKEUP_CHANNEL

logger = logging.getLogger("dilamme.live")

_INTERVAL = 0.25  # seconds between two messages to the sockets
_LINGER = 30.0  # seconds it goes on without sockets, because the next page is often a click away


@dataclass(slots=True)
class Heard:
    """What has come since the last message."""

    ids: dict[str, None] = field(default_factory=dict)  # a set that keeps its order
    complete: bool = True
    new: bool = False  # workers were woken: perhaps there are new jobs

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to tell."""
        return self.complete and not self.ids and not self.new


class Fold:
    """Turns any number of notifications into one `Heard`, and calls `wake` once for each."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._lock = threading.Lock()
        self._heard = Heard()

    def take(self) -> Heard:
        """Return what has come since the last call."""
        with self._lock:
            heard, self._heard = self._heard, Heard()
        return heard

    def hear(self, channel: str, payload: str) -> None:
        """Add a notification."""
        with self._lock:
            first = self._heard.is_empty
            if channel == WAKEUP_CHANNEL:
                self._heard.new = True
            else:
                self._note(payload)
        if first:
            self._wake()

    def missed_some(self) -> None:
        """Note that notifications may have been lost, as after each (re)connect."""
        with self._lock:
            self._heard.complete = False
        self._wake()

    def _note(self, payload: str) -> None:
        moved = decode(payload)
        self._heard.ids.update(dict.fromkeys(moved.ids))
        self._heard.complete &= moved.complete
        if len(self._heard.ids) > KEPT:
            self._heard.ids.clear()
            self._heard.complete = False


class Hub:
    """The sockets of one process, with a thread that listens while there are any."""

    def __init__(self) -> None:
        self.seq = 0  # the number of the latest message
        self._sockets: set[str] = set()
        self._group = ""
        self._listener: Listener | None = None
        self._teller: asyncio.Task[None] | None = None
        self._rest: asyncio.TimerHandle | None = None

    async def join(self, socket: str) -> None:
        """Tell this socket (the name of its channel) too, from now on."""
        if self._rest is not None:
            self._rest.cancel()
            self._rest = None
        if self._teller is None:
            self._start(asyncio.get_running_loop())
        self._sockets.add(socket)
        await get_channel_layer().group_add(self._group, socket)

    async def leave(self, socket: str) -> None:
        """Forget the socket; some time after the last one the hub stops."""
        if socket not in self._sockets:
            return
        self._sockets.remove(socket)
        if not self._sockets:
            self._rest = asyncio.get_running_loop().call_later(_LINGER, self.stop)
        await get_channel_layer().group_discard(self._group, socket)

    def stop(self) -> Listener | None:
        """Stop listening and telling; return the listener, whose thread ends within half a second."""
        if self._rest is not None:
            self._rest.cancel()
        if self._teller is not None:
            self._teller.cancel()
        if self._listener is not None:
            self._listener.stop()
        listener, self._listener, self._teller, self._rest = self._listener, None, None, None
        return listener

    def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        # A name of its own: processes that share a Redis layer must not tell each other's sockets.
        self._group = f"dilamme.live.{uuid.uuid4().hex}"
        something = asyncio.Event()
        fold = Fold(lambda: _call(loop, something.set))
        self._teller = loop.create_task(self._tell_for_ever(fold, something))
        if settings.LISTEN:
            self._listener = Listener([LIVE_CHANNEL, WAKEUP_CHANNEL], fold.hear, fold.missed_some)
            self._listener.start()

    async def _tell_for_ever(self, fold: Fold, something: asyncio.Event) -> None:
        layer_is_well = True
        while True:
            await something.wait()
            something.clear()
            try:
                await self._tell(fold.take())
                layer_is_well = True
            except Exception as error:  # noqa: BLE001  each layer has its own; the gap in the numbers tells the sockets
                if layer_is_well:
                    logger.warning("The channel layer takes no messages, live views stand still: %s", error)
                layer_is_well = False
            await asyncio.sleep(_INTERVAL)

    async def _tell(self, heard: Heard) -> None:
        self.seq += 1
        message = {"ids": list(heard.ids), "complete": heard.complete, "new": heard.new, "seq": self.seq}
        await get_channel_layer().group_send(self._group, {"type": "dilamme.moved", **message})


def _call(loop: asyncio.AbstractEventLoop, function: Callable[[], None]) -> None:
    """Call on the loop's thread; a loop that is closed belongs to a server that is going down."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(function)


hub = Hub()
