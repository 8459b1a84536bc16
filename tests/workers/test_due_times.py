"""Jobs for later start at their time, whatever was known when they were made; no poll comes to the rescue."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TypeVar

import pytest
from django.db import connection, transaction
from django.utils import timezone

from jobs.models import Job
from tests.support import WorkerThread, handler, wait_for, wait_for_all, wait_until

T = TypeVar("T")

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def worker(settings) -> Iterator[WorkerThread]:
    """A worker that polls once an hour, and looks at the database when it is idle."""
    settings.DILAMME = {**settings.DILAMME, "POLL_INTERVAL": 3600.0}
    worker = WorkerThread()
    yield worker
    worker.stop()


def in_(seconds: float) -> dict[str, object]:
    """Return the option that makes a job due so many seconds from now."""
    return {"run_at": timezone.now() + timedelta(seconds=seconds)}


@pytest.mark.parametrize("milliseconds", [1, 3, 10])
def test_a_job_that_falls_due_before_anybody_looks_ahead_is_found(milliseconds: int, worker: WorkerThread):
    """It is for later when it is made, and due when the worker looks for what will be."""
    with handler(lambda: None, name="thing") as thing:
        for made in range(1, 21):
            thing.using(**in_(milliseconds / 1000)).enqueue()
            wait_for_all("completed", made, within=5)


def test_a_job_that_is_due_before_those_the_worker_knows_is_found(worker: WorkerThread):
    """Where jobs begin was looked up when the first was for later than the second."""
    with handler(lambda: None, name="thing") as thing:
        first = thing.using(**in_(600)).enqueue()
        wait_until(lambda: worker.worker._appetite.frontier._places)
        second = thing.using(**in_(0.3)).enqueue()
        assert wait_for(second.pk, "completed", within=10).attempt == 1
        first.refresh_from_db()
        assert first.status == "pending"


def test_a_job_for_later_whose_commit_came_later_still_is_found(worker: WorkerThread):
    """Meanwhile the worker has run one that was due after it."""
    with handler(lambda: None, name="thing") as thing, handler(lambda: None, name="other") as other:
        other.enqueue()
        wait_for_all("completed", 1)
        with transaction.atomic(durable=True):
            late = thing.using(**in_(0.1)).enqueue()
            time.sleep(0.3)
            _elsewhere(other.enqueue)
            wait_until(lambda: _elsewhere(_completed) == 2)
        wait_for(late.pk, "completed", within=10)


def _elsewhere(call: Callable[[], T]) -> T:
    """Do something in a transaction of its own, while another is open."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(_and_close, call).result()


def _and_close(call: Callable[[], T]) -> T:
    try:
        return call()
    finally:
        connection.close()


def _completed() -> int:
    return Job.objects.filter(status="completed").count()
