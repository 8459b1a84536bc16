"""Requests that are repeated with one idempotency key: the same answer, and one effect, whatever happens meanwhile."""

import json
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from typing import Any, TypeVar

import pytest
from django.db import connection, connections
from django.test import Client
from django.utils import timezone

from jobs import enqueue, idempotency
from jobs.idempotency import Reply, once, prune_idempotency
from jobs.models import IdempotencyKey, Job
from jobs.queries import DjangoSession, WorkerSession
from tests.api.answers import JOBS, WORKFLOWS, problems, read
from tests.support import wait_until

pytestmark = pytest.mark.django_db

T = TypeVar("T")

NEW = {"type": "free", "payload": {"a": [1, None, "\u00e9"]}}
GRAPH = {"jobs": {"a": {"type": "free"}, "b": {"type": "free", "after": ["a"]}}}


def post(api: Client, body: Any = NEW, key: str | None = "k", address: str = JOBS) -> Any:
    """Post a body with an idempotency key."""
    headers = {} if key is None else {"Idempotency-Key": key}
    return api.post(address, body, content_type="application/json", headers=headers)


def age(seconds: float) -> None:
    """Let all keys be older by so much."""
    IdempotencyKey.objects.update(created_at=timezone.now() - timedelta(seconds=seconds))


# One after the other


@pytest.mark.parametrize(("address", "body"), [(JOBS, NEW), (WORKFLOWS, GRAPH)])
def test_a_repeated_request_gets_the_same_answer(api: Client, address: str, body: Any) -> None:
    """Status and body are those of the first, to the byte, and nothing more is made."""
    first = post(api, body, address=address)
    read(first, 201)
    made = Job.objects.count()
    second = post(api, body, address=address)
    read(second, 201)
    assert second.content == first.content
    assert Job.objects.count() == made
    assert "Idempotent-Replayed" not in first.headers
    assert second.headers["Idempotent-Replayed"] == "true"


@pytest.mark.parametrize(("address", "body"), [(JOBS, NEW), (WORKFLOWS, GRAPH)])
def test_a_key_changes_nothing_in_the_first_answer(api: Client, address: str, body: Any) -> None:
    """An answer that is kept has the shape of one that is not: the same fields, of the same types."""
    kept, plain = (read(post(api, body, key, address), 201) for key in ("k", None))
    assert _shape(kept) == _shape(plain)


def _shape(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _shape(part) for name, part in value.items()}
    return type(value)


def test_the_answer_stays_as_it_was(api: Client) -> None:
    """What has become of the job since is told by its own address."""
    first = post(api)
    job = Job.objects.get()
    api.post(f"{JOBS}/{job.pk}/cancel")
    assert post(api).content == first.content
    assert read(api.get(f"{JOBS}/{job.pk}"), 200)["data"]["status"] == "cancelled"


def test_an_answer_that_nothing_was_made_is_kept_too(api: Client) -> None:
    """The holder of a unique key is shown again, also when the key is free by then."""
    unique = {**NEW, "unique_key": "order 7"}
    holder = read(post(api, unique, None), 201)["data"]
    assert read(post(api, unique), 200)["data"]["id"] == holder["id"]
    api.post(f"{JOBS}/{holder['id']}/cancel")
    assert read(post(api, unique), 200)["data"]["id"] == holder["id"]
    assert Job.objects.count() == 1


@pytest.mark.parametrize(
    "other", [{"type": "free"}, {**NEW, "priority": 1}, {"type": "strict", "payload": {"number": 1}}]
)
def test_another_body_is_409(api: Client, other: Any) -> None:
    """A key that is used again by mistake makes nothing, and the client is told what to do."""
    first = post(api)
    assert read(post(api, other), 409)["message"] == (
        "The idempotency key 'k' was sent with another request before; repeat that one unchanged, or use a new key for "
        "a new request."
    )
    assert Job.objects.count() == 1
    assert post(api).content == first.content


def test_a_key_is_for_one_address(api: Client) -> None:
    """What was a job cannot be a workflow."""
    read(post(api), 201)
    read(post(api, GRAPH, address=WORKFLOWS), 409)
    assert Job.objects.count() == 1


def test_each_client_has_its_own_keys(api: Client, settings: Any, key: str) -> None:
    """Two programs that choose the same key, say 1, do not get each other's answers."""
    other = "another-key-of-this-test"
    settings.DILAMME = {"API_KEYS": {"tests": key, "other": other}}
    first = read(post(api, key="1"), 201)["data"]["id"]
    stranger = Client(headers={"X-API-Key": other})
    assert read(post(stranger, key="1"), 201)["data"]["id"] != first
    assert sorted(IdempotencyKey.objects.values_list("client", flat=True)) == ["other", "tests"]


def test_other_keys_are_other_requests(api: Client) -> None:
    """The same body with a new key, or with none, makes a new job."""
    for key in ("a", "b", None, None):
        read(post(api, key=key), 201)
    assert Job.objects.count() == 4


# Keys that are none


@pytest.mark.parametrize("chosen", ["", "x" * 201, "two words", "\u00e9", "\t", "a\x7f"])
def test_a_key_that_is_none_is_422(api: Client, chosen: str) -> None:
    """The header is named, and nothing is made."""
    ((field, message),) = problems(post(api, key=chosen))
    assert field == "Idempotency-Key"
    assert message.startswith("String should ")
    assert not Job.objects.exists()


@pytest.mark.parametrize("chosen", ["x", "x" * 200, '"in-quotes"', "!~", "7d5b1a6e-0000-4000-8000-000000000000"])
def test_a_key_is_of_the_client_s_choice(api: Client, chosen: str) -> None:
    """Any printable text without spaces will do."""
    assert post(api, key=chosen).content == post(api, key=chosen).content
    assert IdempotencyKey.objects.get().key == chosen


# What is not kept


REFUSED = [
    ({"type": "nobody_knows_it"}, 422),
    ({"type": "strict"}, 422),
    ({**NEW, "unique_key": "held", "on_conflict": "raise"}, 409),
    ({**NEW, "dependency_ids": ["00000000-0000-0000-0000-000000000005"]}, 422),
]


@pytest.mark.parametrize(("body", "status"), REFUSED, ids=[str(status) + str(body)[-30:] for body, status in REFUSED])
def test_a_refusal_leaves_the_key_free(api: Client, body: Any, status: int) -> None:
    """A client that was refused may repair its request and send it with the same key."""
    enqueue("free", unique_key="held")
    read(post(api, body), status)
    assert not IdempotencyKey.objects.exists()
    read(post(api), 201)


def test_a_failure_of_our_own_leaves_the_key_free(api: Client) -> None:
    """What could not be answered is not kept: neither the job nor the key."""

    def fail() -> Reply:
        enqueue("free")
        raise RuntimeError

    with pytest.raises(RuntimeError):
        once("tests", "k", b"", fail)
    assert not Job.objects.exists()
    assert not IdempotencyKey.objects.exists()


def test_without_a_key_nothing_is_stored(api: Client, django_assert_num_queries: Any) -> None:
    """Who does not ask for it does not pay for it."""
    with django_assert_num_queries(1):
        read(post(api, key=None), 201)
    assert not IdempotencyKey.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_key_is_not_spooled(api: Client, settings: Any, tmp_path: Any) -> None:
    """With a key the database must answer: a job in the spool could not be found by it."""
    settings.DILAMME = {**settings.DILAMME, "SPOOL": str(tmp_path)}
    kept = connection.settings_dict["PORT"]
    connection.close()
    connection.settings_dict["PORT"], host = "9", connection.settings_dict["HOST"]
    connection.settings_dict["HOST"] = "127.0.0.1"
    try:
        assert read(post(api), 503)["message"] == "The database is away. Try again in a moment."
    finally:
        connection.settings_dict["PORT"], connection.settings_dict["HOST"] = kept, host
        connection.close()
    assert not list(tmp_path.iterdir())


# Time


def test_a_key_holds_for_the_retention(api: Client, settings: Any) -> None:
    """Just within it the first answer comes; beyond it the key is new, whether it was pruned or not."""
    settings.DILAMME = {**settings.DILAMME, "IDEMPOTENCY_RETENTION": 60}
    first = post(api)
    age(50)
    assert post(api).content == first.content
    age(70)
    other = {**NEW, "priority": 1}
    second = post(api, other)
    read(second, 201)
    assert post(api, other).content == second.content
    assert (Job.objects.count(), IdempotencyKey.objects.count()) == (2, 1)


def test_old_keys_are_pruned(api: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that are older than the retention go, in batches; the others stay."""
    monkeypatch.setattr(idempotency, "_BATCH", 2)
    for key in "abcde":
        post(api, key=key)
    age(86_401)
    post(api, key="young")
    assert prune_idempotency(DjangoSession()) == 5
    assert list(IdempotencyKey.objects.values_list("key", flat=True)) == ["young"]
    assert prune_idempotency(DjangoSession()) == 0
    assert Job.objects.count() == 6


# At once


@pytest.fixture
def together(transactional_db: None) -> Any:
    """Run functions in threads that give their connections back."""
    with ThreadPoolExecutor(8) as threads:

        def run(function: Callable[[], T]) -> "Future[T]":
            def with_connection() -> T:
                try:
                    return function()
                finally:
                    connections.close_all()

            return threads.submit(with_connection)

        yield run


def waiting() -> bool:
    """Return whether somebody waits for the transaction of another."""
    with connection.cursor() as cursor:
        cursor.execute(
            "select exists (select from pg_stat_activity"
            " where wait_event_type = 'Lock' and datname = current_database())"
        )
        return bool(cursor.fetchone()[0])


class Held:
    """A request that has its key and is at work until it is let go."""

    def __init__(self, together: Any, outcome: Reply | Exception) -> None:
        self._outcome = outcome
        self._at_work, self._let_go = threading.Event(), threading.Event()
        asked = f"POST {JOBS}\n".encode() + json.dumps(NEW).encode()
        self.answer = together(lambda: once("tests", "k", asked, self._act))
        assert self._at_work.wait(20)

    def _act(self) -> Reply:
        enqueue("free")
        self._at_work.set()
        assert self._let_go.wait(20)
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return self._outcome

    def let_go(self) -> None:
        """Let it end."""
        self._let_go.set()


def test_many_at_once_make_one_job(together: Any, key: str) -> None:
    """Whoever comes first makes it, and all get its answer."""
    answers = [together(lambda: post(Client(headers={"X-API-Key": key})).content) for _ in range(8)]
    assert len({answer.result(timeout=30) for answer in answers}) == 1
    assert (Job.objects.count(), IdempotencyKey.objects.count()) == (1, 1)


def test_the_second_waits_for_the_first(together: Any, api: Client, key: str) -> None:
    """A request that is repeated before it was answered makes nothing: it gets the first answer once there is one."""
    text = '{"message": "m", "data": null, "errors": [], "meta": {}}'
    first = Held(together, Reply(201, text))
    second = together(lambda: post(Client(headers={"X-API-Key": key})))
    wait_until(waiting)
    assert not second.done()
    first.let_go()
    assert second.result(timeout=30).content.decode() == text
    assert first.answer.result(timeout=30) == Reply(201, text)
    assert Job.objects.count() == 1


def test_the_second_is_the_first_if_that_was_rolled_back(together: Any, key: str) -> None:
    """A failure of the first is not the second's: it takes the key and makes the job."""
    first = Held(together, RuntimeError("rolled back"))
    second = together(lambda: post(Client(headers={"X-API-Key": key})))
    wait_until(waiting)
    first.let_go()
    body = read(second.result(timeout=30), 201)
    assert isinstance(first.answer.exception(timeout=30), RuntimeError)
    assert [str(pk) for pk in Job.objects.values_list("pk", flat=True)] == [body["data"]["id"]]


def test_pruning_passes_by_a_key_that_is_taken_anew(together: Any) -> None:
    """A worker that prunes neither waits for a request nor takes its key away; its connection is its own."""
    IdempotencyKey.objects.create(client="tests", key="k", digest="d", status=201, answer="{}")
    age(90_000)
    first = Held(together, Reply(201, "{}"))
    session = WorkerSession()
    try:
        assert prune_idempotency(session) == 0
    finally:
        session.close()
    first.let_go()
    assert first.answer.result(timeout=30).status == 201
    assert IdempotencyKey.objects.get().status == 201
