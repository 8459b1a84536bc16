"""A browser that watches jobs: it names them, gets where they stand, and is told when they move.

It only reads. What a client sends is never trusted, and never a reason for more than closing its socket.
"""

import json
import logging
import time
from typing import Any

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.db import InterfaceError, OperationalError

from jobs import insights
from jobs.live.access import refusal
from jobs.live.hub import hub
from jobs.live.messages import watched

logger = logging.getLogger("dilamme.live")

BAD_REQUEST, TRY_LATER, NOT_SET_UP = 4400, 1013, 1011
_CHECK_EVERY = 30.0  # seconds for which a permission is believed
_NEW_COUNTED = 100  # newer jobs are counted up to here


class LiveConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]  # Channels carries no types
    """One socket. Until it has asked for its first snapshot it is told nothing."""

    _watched: frozenset[str] | None = None
    _checked: float | None = None  # when the permission was last asked for

    async def dispatch(self, message: dict[str, Any]) -> None:
        """Handle an event; with the database away, send the client off to come back later."""
        try:
            await super().dispatch(message)
        except (OperationalError, InterfaceError):
            await self._refuse(TRY_LATER)

    async def connect(self) -> None:
        """Let staff in who may view jobs."""
        if self.channel_layer is None:
            logger.error("Live views need a channel layer: set CHANNEL_LAYERS, in memory is enough.")
            await self.close(NOT_SET_UP)
        elif await self._may_go_on():
            await self.accept()

    async def disconnect(self, code: int) -> None:  # noqa: ARG002  Channels' signature
        """Leave."""
        if self.channel_layer is not None:
            await hub.leave(self.channel_name)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:  # noqa: ARG002
        """Watch what the client names from now on, and answer with where that stands."""
        ids = watched(text_data)
        if ids is None:
            await self._refuse(BAD_REQUEST)
        elif await self._may_go_on():
            seq = hub.seq  # before the look: what is told later is newer, or the same
            self._watched = ids
            await self._say(**await database_sync_to_async(_snapshot)(ids), complete=True, seq=seq)

    async def dilamme_moved(self, event: dict[str, Any]) -> None:
        """Pass on what the hub tells: of the jobs that moved those that are watched, as they stand now."""
        if self._watched is None or not await self._may_go_on():
            return
        moved = self._watched.intersection(event["ids"])
        jobs = await database_sync_to_async(_standing)(moved) if moved else []
        await self._say(jobs=jobs, complete=event["complete"], new=event["new"], seq=event["seq"])

    async def _may_go_on(self) -> bool:
        """Ask again, now and then, whether the client may still watch."""
        if self._checked is not None and time.monotonic() - self._checked < _CHECK_EVERY:
            return True
        if code := await refusal(self.scope):
            await self._refuse(code)
            return False
        await hub.join(self.channel_name)  # again and again: layers forget a member after a day
        self._checked = time.monotonic()
        return True

    async def _refuse(self, code: int) -> None:
        self._watched = None
        await self.close(code)

    async def _say(self, **message: Any) -> None:
        await self.send(json.dumps(message))


def _standing(ids: frozenset[str]) -> list[list[Any]]:
    """Return where jobs stand now: [id, status, attempt]."""
    rows = insights.light_jobs().filter(pk__in=ids).values_list("pk", "status", "attempt")
    return [[str(pk), status, attempt] for pk, status, attempt in rows]


def _snapshot(ids: frozenset[str]) -> dict[str, Any]:
    """Return where jobs stand, and how many were made after the newest of them, as far as that is counted."""
    newer = insights.light_jobs().filter(pk__gt=max(ids)) if ids else insights.light_jobs()
    return {"jobs": _standing(ids), "newer": newer[:_NEW_COUNTED].count()}
