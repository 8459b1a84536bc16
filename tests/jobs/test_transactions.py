"""Enqueueing is part of the caller's transaction: job and wake-up come with the commit, or not at all."""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import path

from jobs import NewJob, Options, enqueue, enqueue_many
from jobs.models import Job
from jobs.queries import WAKEUP_CHANNEL, connect

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("free_type")]

END = "end of the test"


@pytest.fixture
def heard(transactional_db: None) -> Iterator[Callable[[], list[str]]]:
    """Listen like a worker; the call returns all that was heard so far, in order."""
    with connect() as listener:
        listener.execute(f"listen {WAKEUP_CHANNEL}")

        def so_far() -> list[str]:
            with connection.cursor() as cursor:  # whatever was committed before this one has been delivered before it
                cursor.execute("select pg_notify(%s, %s)", [WAKEUP_CHANNEL, END])
            payloads = []
            for notification in listener.notifies(timeout=20):
                if notification.payload == END:
                    return payloads
                queue, priority, since, *later = notification.payload.split(" ")
                assert float(priority) == 2.0
                assert float(since) <= time.time()
                payloads.append(" ".join([queue, *later]))
            raise AssertionError("not even the last notification has arrived")

        yield so_far


class Undone(Exception):
    """Raised to roll back."""


# Commit


def test_a_job_wakes_the_workers_of_its_queue(heard: Callable[[], list[str]]) -> None:
    """The notification names queue, priority and time, and nothing of the job itself."""
    enqueue("free", {"a": "x" * 20_000}, queue="mail")
    assert heard() == ["mail"]


def test_nothing_is_seen_or_heard_before_the_commit(heard: Callable[[], list[str]]) -> None:
    """A worker cannot look for rows that the caller has not committed yet."""
    with transaction.atomic(), connect() as other:
        made = enqueue("free")
        assert list(other.notifies(timeout=0)) == []
        assert other.execute("select count(*) from dilamme_job").fetchall() == [(0,)]
    assert Job.objects.get().pk == made.pk
    assert heard() == ["default"]


def test_many_jobs_of_one_transaction_wake_each_queue_once(heard: Callable[[], list[str]]) -> None:
    """A thousand jobs do not make a thousand wake-ups, in one statement or in many."""
    with transaction.atomic():
        for _ in range(20):
            enqueue("free", queue="mail")
        enqueue_many(NewJob("free", {}, Options(queue=queue)) for queue in ["mail", "maths"] * 500)
    assert sorted(heard()) == ["mail", "maths"]


def test_what_is_due_soon_is_announced_as_that(heard: Callable[[], list[str]]) -> None:
    """A worker that knows when it has to look again does not look now."""
    enqueue("free", run_at=datetime.now(UTC) + timedelta(seconds=2))
    assert heard() == ["default later"]


def test_what_is_due_already_is_announced_as_due(heard: Callable[[], list[str]]) -> None:
    """A time in the past is now."""
    enqueue("free", run_at=datetime.now(UTC) - timedelta(days=2))
    assert heard() == ["default"]


def test_the_first_that_is_due_decides_for_its_queue(heard: Callable[[], list[str]]) -> None:
    """One job that is due makes the workers look now, whatever else comes later."""
    soon = datetime.now(UTC) + timedelta(seconds=2)
    enqueue_many([NewJob("free", {}, Options(run_at=soon)), NewJob("free"), NewJob("free", {}, Options(run_at=soon))])
    assert heard() == ["default"]


def test_what_is_due_beyond_the_horizon_wakes_nobody(heard: Callable[[], list[str]]) -> None:
    """Workers find it when they look ahead; a million jobs for next month are no reason to wake up."""
    enqueue("free", run_at=datetime.now(UTC) + timedelta(days=30))
    assert heard() == []


def test_the_horizon_is_two_polls_away(heard: Callable[[], list[str]], settings: Any) -> None:
    """A job is either announced, or further away than the next regular look."""
    settings.DILAMME = {"POLL_INTERVAL": 100.0}
    enqueue("free", run_at=datetime.now(UTC) + timedelta(seconds=150), queue="announced")
    enqueue("free", run_at=datetime.now(UTC) + timedelta(seconds=250), queue="not_announced")
    assert heard() == ["announced later"]


def test_a_job_that_waits_for_others_wakes_nobody(heard: Callable[[], list[str]]) -> None:
    """Nobody could take it; whoever settles its last parent wakes the workers."""
    parent = enqueue("free", queue="parents")
    enqueue("free", queue="children", depends_on=[parent.pk])
    assert heard() == ["parents"]


# Rollback


def test_a_rollback_takes_the_job_and_the_wake_up_with_it(heard: Callable[[], list[str]]) -> None:
    """What was not committed was never enqueued."""
    with pytest.raises(Undone), transaction.atomic():
        parent = enqueue("free")
        enqueue("free", depends_on=[parent.pk])
        raise Undone
    assert not Job.objects.exists()
    assert heard() == []


def test_a_savepoint_takes_only_its_own_jobs_with_it(heard: Callable[[], list[str]]) -> None:
    """What was enqueued around the savepoint stays, and only that is announced."""
    with transaction.atomic():
        enqueue("free", queue="before")
        with pytest.raises(Undone), transaction.atomic():
            enqueue("free", queue="undone")
            raise Undone
        enqueue("free", queue="after")
    assert sorted(Job.objects.values_list("queue", flat=True)) == ["after", "before"]
    assert sorted(heard()) == ["after", "before"]


def test_a_refused_job_leaves_the_transaction_usable(heard: Callable[[], list[str]]) -> None:
    """The caller may catch the error and go on: none of the checks is left to PostgreSQL."""
    from jobs.errors import DilammeError

    with transaction.atomic():
        for wrong in ({"queue": "\x00"}, {"priority": 1e308}, {"max_attempts": 2**40}, {"depends_on": [Job().pk]}):
            with pytest.raises(DilammeError):
                enqueue("free", **wrong)
        enqueue("free")
    assert Job.objects.count() == 1
    assert heard() == ["default"]


# In a request


def view(request: HttpRequest, fate: str) -> HttpResponse:
    """Enqueue, then answer or fail."""
    enqueue("free", {"fate": fate})
    if fate == "fail":
        raise Undone
    return HttpResponse()


urlpatterns = [path("<str:fate>", view)]


@pytest.mark.parametrize(("fate", "woken"), [("answer", ["default"]), ("fail", [])])
def test_a_request_that_fails_makes_no_job(
    heard: Callable[[], list[str]], settings: Any, monkeypatch: pytest.MonkeyPatch, fate: str, woken: list[str]
) -> None:
    """Under ATOMIC_REQUESTS a view that raises after it has enqueued leaves nothing behind."""
    settings.ROOT_URLCONF = __name__
    monkeypatch.setitem(connection.settings_dict, "ATOMIC_REQUESTS", True)
    Client(raise_request_exception=False).get(f"/{fate}")
    assert Job.objects.count() == len(woken)
    assert heard() == woken
