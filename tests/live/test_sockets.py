"""Who may open a socket and keep it, what it may say, and what it is told."""

import json
import uuid

import pytest
from asgiref.sync import sync_to_async
from channels.db import database_sync_to_async
from django.contrib.sessions.models import Session
from django.db import connection, connections

from jobs.live import consumer
from jobs.live.consumer import BAD_REQUEST, NOT_SET_UP, TRY_LATER
from jobs.states import Status
from tests.admin.rows import make_job, make_user
from tests.live.conftest import ORIGIN, session_of

pytestmark = pytest.mark.django_db(transaction=True)

UNAUTHENTICATED, FORBIDDEN = 4401, 4403


@pytest.fixture
def session(watcher) -> str:
    """Return the session of somebody who may watch."""
    return session_of(watcher)


@pytest.fixture
def impatient(monkeypatch) -> None:
    """Let no permission be believed for longer than a moment."""
    monkeypatch.setattr(consumer, "_CHECK_EVERY", 0.0)


@pytest.mark.parametrize("session_key", [None, "", "nobody's", "x" * 5000])
async def test_the_anonymous_are_refused(open_socket, session_key):
    """Without a session there is no socket."""
    _, code = await open_socket(session_key)
    assert code == UNAUTHENTICATED


@pytest.mark.parametrize(
    ("permissions", "fields"),
    [((), {}), (("retry_job", "view_worker"), {}), (("view_job",), {"is_staff": False})],
    ids=["no permission", "other permissions", "no staff"],
)
async def test_the_unprivileged_are_refused(open_socket, permissions, fields):
    """Only staff who may view jobs may watch them."""
    user = await database_sync_to_async(make_user)("somebody", *permissions, **fields)
    _, code = await open_socket(await database_sync_to_async(session_of)(user))
    assert code == FORBIDDEN


@pytest.mark.parametrize("origin", [b"https://evil.example", b"null", b"", b"http://localhost.evil.example"])
async def test_foreign_pages_are_refused(open_socket, session, origin):
    """A page of another site cannot use the session of its visitor."""
    _, code = await open_socket(session, (b"origin", origin))
    assert code is not None


async def test_other_addresses_are_refused(open_socket, session):
    """There is one socket; any other address is closed, and no error in the log."""
    _, code = await open_socket(session, ORIGIN, path="/ws/other/")
    assert code is not None


async def test_a_snapshot(open_socket, session):
    """Who asks is told where the jobs stand, and how many are newer."""
    pending, dead, _ = [
        await database_sync_to_async(make_job)(status, attempt=attempt)
        for status, attempt in ((Status.PENDING, 0), (Status.FAILED, 3), (Status.PENDING, 0))
    ]
    socket, _ = await open_socket(session)
    answer = await socket.watch(dead.pk, pending.pk, uuid.UUID(int=0))
    assert sorted(answer["jobs"]) == sorted([[str(pending.pk), "pending", 0], [str(dead.pk), "failed", 3]])
    assert answer["complete"] is True
    assert answer["newer"] == 1
    assert isinstance(answer["seq"], int)


async def test_a_page_without_jobs_watches_too(open_socket, session):
    """An empty page is told of the jobs that have come."""
    await database_sync_to_async(make_job)()
    socket, _ = await open_socket(session)
    answer = await socket.watch()
    assert (answer["jobs"], answer["newer"]) == ([], 1)


@pytest.mark.parametrize("said", ["x", "[]", '{"watch": [1]}', json.dumps({"watch": ["x" * 17_000]}), b"\x00\xff"])
async def test_nonsense_closes_the_socket(open_socket, session, said):
    """A client that says what none of ours would say is sent away."""
    socket, _ = await open_socket(session)
    await socket.send_to(**{"bytes_data" if isinstance(said, bytes) else "text_data": said})
    assert await socket.closed() == BAD_REQUEST


@pytest.mark.usefixtures("impatient")
async def test_a_socket_does_not_outlive_the_login(open_socket, session):
    """After a logout nothing more is told."""
    socket, _ = await open_socket(session)
    await socket.watch()
    await database_sync_to_async(Session.objects.all().delete)()
    await socket.send_json_to({"watch": []})
    assert await socket.closed() == UNAUTHENTICATED


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("change", "code"),
    [({"is_active": False}, UNAUTHENTICATED), ({"is_staff": False}, FORBIDDEN), ({"password": "new"}, UNAUTHENTICATED)],
    ids=["deactivated", "no longer staff", "password changed"],
)
async def test_a_socket_does_not_outlive_the_account(open_socket, session, watcher, change, code):
    """Whoever may not watch any more is told nothing more."""
    socket, _ = await open_socket(session)
    await socket.watch()
    await database_sync_to_async(type(watcher).objects.filter(pk=watcher.pk).update)(**change)
    await socket.send_json_to({"watch": []})
    assert await socket.closed() == code


@pytest.mark.usefixtures("impatient")
async def test_a_socket_does_not_outlive_the_permission(open_socket, session, watcher):
    """Without the permission to view jobs nothing more is told."""
    socket, _ = await open_socket(session)
    await socket.watch()
    await database_sync_to_async(watcher.user_permissions.clear)()
    await socket.send_json_to({"watch": []})
    assert await socket.closed() == FORBIDDEN


async def test_without_a_database_a_client_comes_back_later(open_socket, session, monkeypatch):
    """With the database away the socket is closed with a word, and no error in the log."""
    socket, _ = await open_socket(session)
    monkeypatch.setitem(connection.settings_dict, "HOST", "/nowhere")
    await sync_to_async(connections.close_all)()
    await socket.send_json_to({"watch": []})
    assert await socket.closed() == TRY_LATER


async def test_a_host_without_a_channel_layer_is_told_what_is_missing(open_socket, session, settings, caplog):
    """The socket is refused and the log names the setting, instead of an exception for each browser."""
    settings.CHANNEL_LAYERS = {}
    _, code = await open_socket(session)
    assert code == NOT_SET_UP
    assert "Live views need a channel layer: set CHANNEL_LAYERS" in caplog.text
