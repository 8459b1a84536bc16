"""From a commit to a socket: what is heard, how it is folded, and what happens when some of it is lost."""

import asyncio
import uuid

import pytest
from channels.db import database_sync_to_async
from channels.layers import get_channel_layer
from django.db import connection

from jobs import enqueue, lifecycle
from jobs.live.hub import Fold, Heard, hub
from jobs.live.messages import KEPT, encode
from jobs.live.publishing import publish
from jobs.queries import LIVE_CHANNEL, WAKEUP_CHANNEL, WorkerSession
from jobs.signals import Change
from jobs.states import Status
from tests.admin.rows import make_job
from tests.live.conftest import session_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
async def socket(open_socket, watcher):
    """Return a socket that is open and has heard that its process listens."""
    opened, _ = await open_socket(await database_sync_to_async(session_of)(watcher))
    await opened.watch()
    await opened.hear(lambda message: not message["complete"])
    return opened


def _change(job_id: uuid.UUID, status: str = "completed") -> Change:
    return Change(job_id, status, status, 1)


@database_sync_to_async
def _publish_as_a_worker(*changes: Change) -> None:
    session = WorkerSession()
    session.fetch("publish", messages=encode(changes))
    session.close()


async def test_a_workers_notification_reaches_the_socket(socket):
    """A watched job that moved is told of as it stands in the database, whatever the notification said."""
    job, other = [await database_sync_to_async(make_job)(Status.COMPLETED, attempt=1) for _ in range(2)]
    await socket.watch(job.pk)
    await _publish_as_a_worker(_change(other.pk), _change(job.pk, "pending"))
    message = await socket.hear(lambda message: message["jobs"])
    assert message["jobs"] == [[str(job.pk), "completed", 1]]
    assert message["complete"] is True


async def test_an_operators_change_reaches_the_socket(socket):
    """A cancellation is told of after its commit, without any worker."""
    job = await database_sync_to_async(make_job)()
    await socket.watch(job.pk)
    await database_sync_to_async(lifecycle.cancel)([job.pk], actor="user:ada")
    assert (await socket.hear(lambda message: message["jobs"]))["jobs"] == [[str(job.pk), "cancelled", 0]]


async def test_new_jobs_are_hinted_at(socket):
    """A browser hears that there may be new jobs, and finds out how many by asking."""
    await database_sync_to_async(enqueue)("send_email", _an_email())
    assert (await socket.hear(lambda message: message.get("new")))["jobs"] == []
    assert (await socket.watch())["newer"] == 1


def _an_email() -> dict[str, object]:
    return {"to": ["ada@example.com"], "subject": "Hello", "body": "Hello"}


async def test_the_numbers_have_no_gap(socket):
    """Messages are numbered one after the other, on from the answer."""
    seq = (await socket.watch())["seq"]
    for expected in (seq + 1, seq + 2):
        await _publish_as_a_worker(_change(uuid.uuid4()))
        assert (await socket.hear(lambda _: True))["seq"] == expected


async def test_a_lost_connection_is_told(socket):
    """After the listener has lost its connection and found a new one, browsers know that they missed something."""
    assert await database_sync_to_async(_end_listeners)() == 1
    message = await socket.hear(lambda message: not message["complete"])
    assert message["jobs"] == []
    await _publish_as_a_worker(_change(uuid.uuid4()))
    assert (await socket.hear(lambda _: True))["complete"] is True


def _end_listeners() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "select count(pg_terminate_backend(pid)) from pg_stat_activity"
            " where datname = current_database() and pid <> pg_backend_pid() and query ilike 'listen%'"
        )
        return cursor.fetchone()[0]


async def test_a_socket_that_never_reads_holds_nobody_up(socket):
    """A full channel drops messages, which its number betrays; nothing raises and nothing grows."""
    layer = get_channel_layer()
    deaf = await layer.new_channel()
    await hub.join(deaf)
    for _ in range(layer.capacity + 50):
        await hub._tell(Heard())
    assert layer.channels[deaf].qsize() <= layer.capacity
    await hub.leave(deaf)
    assert (await socket.watch())["seq"] == hub.seq


async def test_the_hub_rests_after_the_last_socket(socket, monkeypatch):
    """Without sockets nothing listens, after a while."""
    monkeypatch.setattr("jobs.live.hub._LINGER", 0.0)
    listener = hub._listener
    await socket.disconnect()
    await asyncio.to_thread(listener.join, 10)
    assert hub._listener is None
    assert not listener.is_alive()


async def test_processes_do_not_share_a_group(socket):
    """The group of a hub is new each time it starts, so that a shared layer multiplies nothing."""
    first = hub._group
    listener = hub.stop()
    await asyncio.to_thread(listener.join, 10)
    await hub.join(await get_channel_layer().new_channel())
    assert hub._group != first


def test_a_storm_is_folded():
    """However many notifications come between two looks, they wake once and name each job once."""
    wakes: list[None] = []
    fold = Fold(lambda: wakes.append(None))
    job_id = uuid.uuid4()
    for _ in range(500):
        fold.hear(LIVE_CHANNEL, encode([_change(job_id)])[0])
        fold.hear(WAKEUP_CHANNEL, "default")
    assert len(wakes) == 1
    assert fold.take() == Heard({str(job_id): None}, complete=True, new=True)
    assert fold.take().is_empty


def test_what_is_folded_is_bounded():
    """When more jobs moved than are kept, none is named and everybody is sent to look."""
    fold = Fold(lambda: None)
    for _ in range(KEPT + 1):
        fold.hear(LIVE_CHANNEL, encode([_change(uuid.uuid4())])[0])
    assert fold.take() == Heard(complete=False)


def test_publishing_fails_nobody(caplog, monkeypatch):
    """With the database away an operator's change is not shown live, which is logged, and nothing else happens."""
    connection.close()
    monkeypatch.setitem(connection.settings_dict, "HOST", "/nowhere")
    publish([_change(uuid.uuid4())])
    assert "1 changes were not shown live" in caplog.text


async def test_many_changes_are_not_named(socket):
    """More changes than are kept are told of without their names."""
    await database_sync_to_async(publish)([_change(uuid.uuid4()) for _ in range(KEPT + 1)])
    assert (await socket.hear(lambda message: not message["complete"]))["jobs"] == []
