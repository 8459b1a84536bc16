"""Sockets on the real application, and a hub that is gone when the test ends."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from channels.testing import WebsocketCommunicator
from django.db import connections
from django.test import Client

from jobs.live.hub import hub
from tests.admin.rows import make_user

ORIGIN = (b"origin", b"http://localhost")


class Socket(WebsocketCommunicator):
    """A browser's end of the live view."""

    async def watch(self, *ids: object) -> dict[str, Any]:
        """Ask where jobs stand, and return the answer."""
        await self.send_json_to({"watch": [str(id_) for id_ in ids]})
        return await self.hear(lambda message: "newer" in message)

    async def hear(self, wanted: Callable[[dict[str, Any]], bool], within: float = 10.0) -> dict[str, Any]:
        """Return the next message that is wanted, past all others."""
        async with asyncio.timeout(within):
            while True:
                message = await self.receive_json_from(timeout=within)
                if wanted(message):
                    return message

    async def closed(self) -> int:
        """Return the code with which the server closes, past all messages."""
        while (event := await self.receive_output(timeout=10))["type"] != "websocket.close":
            pass
        return event["code"]


def session_of(user: object) -> str:
    """Log the user in, and return the key of the session."""
    client = Client()
    client.force_login(user)
    return client.cookies["sessionid"].value


@pytest.fixture
def watcher(transactional_db):
    """Return a member of staff who may view jobs."""
    return make_user("watcher", "view_job")


@pytest.fixture
async def open_socket() -> AsyncIterator[Callable[..., Awaitable[tuple[Socket, bool | int]]]]:
    """Open sockets; the answer is the socket, and the close code of a refused one."""
    from dilamme_project.asgi import application

    opened: list[Socket] = []

    async def open_(session: str | None, *headers: tuple[bytes, bytes], path: str = "/ws/dilamme/"):
        cookies = [(b"cookie", f"sessionid={session}".encode())] if session else []
        socket = Socket(application, path, headers=[*(headers or [ORIGIN]), *cookies])
        accepted, code = await socket.connect(timeout=10)
        opened.append(socket)
        return socket, None if accepted else code

    try:
        yield open_
        for socket in opened:
            await socket.disconnect(timeout=10)
    finally:
        if listener := hub.stop():
            await asyncio.to_thread(listener.join, 10)
        await sync_to_async(connections.close_all)()
