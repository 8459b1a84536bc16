"""While jobs wait for a busy worker, whoever adds another says nothing; and nothing is ever left lying for it."""

import threading
import time
from collections.abc import Iterator
from datetime import timedelta

import psycopg
import pytest
from django.db import connection, transaction
from django.utils import timezone

from jobs import enqueue_many
from jobs.drafts import NewJob
from jobs.models import Job
from jobs.models import Worker as WorkerRow
from jobs.queries import WAKEUP_CHANNEL
from tests.support import WorkerThread, database_url, handler, wait_for_all, wait_until
from workers.worker import Plan, Worker

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def heard() -> Iterator[psycopg.Connection]:
    """A session that hears what workers hear."""
    with psycopg.connect(database_url(), autocommit=True) as listener:
        listener.execute(f"listen {WAKEUP_CHANNEL}")
        yield listener


@pytest.fixture
def hour_long_polls(settings) -> None:
    """Nothing is found by polling."""
    settings.DILAMME = {**settings.DILAMME, "POLL_INTERVAL": 3600.0}


def told(listener: psycopg.Connection) -> list[str]:
    """Return for which queues and priorities there was word."""
    return [" ".join(note.payload.split(" ")[:2]) for note in listener.notifies(timeout=0.3)]


def test_where_older_jobs_wait_a_worker_is_not_told_of_another(heard, hour_long_polls):
    """It is of one that is more urgent, for later, in another queue, or made in a transaction that goes on."""
    go_on = threading.Event()
    with handler(lambda: go_on.wait(20), name="slow") as slow:
        long_ago = timezone.now() - timedelta(minutes=1)
        enqueue_many([NewJob("slow")] * 1_000)
        Job.objects.update(run_at=long_ago)
        worker = WorkerThread(concurrency=1)
        try:
            wait_until(lambda: WorkerRow.objects.filter(saturated=["default 2"]).exists())
            told(heard)
            slow.enqueue()
            assert told(heard) == []
            slow.using(priority=1.5).enqueue()
            slow.using(queue="mail").enqueue()
            slow.using(run_at=timezone.now() + timedelta(seconds=2)).enqueue()
            assert told(heard) == ["default 1.5", "mail 2", "default 2"]
            with transaction.atomic():
                slow.enqueue()
            assert told(heard) == ["default 2"]
            go_on.set()
            wait_for_all("completed", 1_005)
            wait_until(lambda: WorkerRow.objects.filter(saturated=[]).exists())
            slow.enqueue()
            assert told(heard) == ["default 2"]
            wait_for_all("completed", 1_006)
        finally:
            go_on.set()
            worker.stop()


def test_one_idle_worker_is_enough_to_be_told(heard):
    """The others' backlog is none of its own; and without any worker there is word as well."""
    with handler(lambda: None, name="thing") as thing:
        for saturated in (None, ["default 2"], []):
            if saturated is not None:
                later = timezone.now() + timedelta(minutes=1)
                WorkerRow.objects.create(concurrency=1, lease_expires_at=later, saturated=saturated)
            thing.enqueue()
            assert told(heard) == ([] if saturated else ["default 2"])


def test_what_is_made_as_a_backlog_ends_is_not_left_lying(hour_long_polls):
    """Four sessions enqueue in bursts, so that the worker is now busy and now idle; no poll comes to the rescue."""

    def enqueue_in_bursts():
        for _ in range(6):
            for _ in range(40):
                thing.enqueue()
            time.sleep(0.15)
        connection.close()

    with handler(lambda: time.sleep(0.002), name="thing") as thing:
        enqueue_many([NewJob("thing")] * 3_000)
        worker = WorkerThread(concurrency=2)
        try:
            wait_until(lambda: WorkerRow.objects.filter(saturated=["default 2"]).exists())
            threads = [threading.Thread(target=enqueue_in_bursts) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            wait_for_all("completed", 3_000 + 4 * 6 * 40)
        finally:
            worker.stop()


def test_after_a_backlog_a_worker_looks_thrice_for_what_it_was_not_told_of():
    """Somebody may have read that it is busy and commit a moment later."""
    worker = Worker(Plan())
    for backlog in ({("default", 2.0)}, set()):
        worker._hunger.backlog = frozenset(backlog)
        worker._hunger.is_felt = False
        worker._duties.tell_backlog()
    looks = 0
    deadline = time.monotonic() + 2
    while looks < 3 and time.monotonic() < deadline:
        worker._advance_timers()
        looks += worker._hunger.is_felt and worker._appetite.frontier.is_stale
        worker._hunger.is_felt = False
        time.sleep(0.01)
    assert looks == 3
    worker._session.close()
