"""Who counts as alive, on whose clock, and in which order jobs get their turn."""

import asyncio
import logging
import threading
import time
import uuid
from datetime import timedelta

import pytest
from django.db import connections
from django.utils import timezone

from jobs.models import Job, Worker
from scheduling import Aging, Backoff
from tests.support import handler, history_of, wait_for, wait_for_all, wait_until

pytestmark = pytest.mark.django_db(transaction=True)


def compute(seconds: float) -> int:
    """Do nothing but compute, without giving way to anybody."""
    end, turns = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        turns += sum(range(100))
    return turns


@pytest.mark.parametrize("is_async", [False, True])
def test_a_handler_that_only_computes_does_not_lose_its_lease(start_worker, settings, caplog, is_async):
    """It computes for three leases: it starts once, succeeds once, and no sweep of another worker takes it."""
    settings.DILAMME = {**settings.DILAMME, "LEASE": 1.0, "SWEEP_INTERVAL": 0.2}

    def busy() -> None:
        compute(3.0)

    async def async_busy() -> None:
        compute(3.0)

    async def short() -> None:
        await asyncio.sleep(0)

    with handler(async_busy if is_async else busy) as task, handler(short) as beside:
        start_worker()
        start_worker(queues=["other"])
        with caplog.at_level(logging.WARNING, logger="dilamme.worker"):
            job = task.enqueue()
            wait_until(lambda: Job.objects.get(pk=job.pk).status == "processing")
            beside.enqueue_many([{}] * 10)
            wait_for(job.pk, "completed")
            wait_for_all("completed", 11)
        assert history_of(job.pk) == ["completed"]
        assert Job.objects.filter(attempt=1).count() == 11
        blocked = [r.getMessage() for r in caplog.records if "event loop is blocked" in r.getMessage()]
        assert any(str(job.pk) in text and "compute" in text for text in blocked) is is_async


def test_the_hosts_wall_clock_decides_nothing(start_worker_process):
    """Workers whose wall clocks are ten minutes off rescue no living job, and start jobs at the database's time."""
    from tests.app.tasks import nap

    for seconds in ("600", "-600"):
        start_worker_process("--concurrency", "1", TEST_CLOCK_IS_OFF_BY=seconds)
    wait_until(lambda: Worker.objects.count() == 2, within=30)
    long_ones = nap.enqueue_many([{"seconds": 5}] * 2)
    due = nap.using(run_at=timezone.now() + timedelta(seconds=7)).enqueue(seconds=0)
    for job in long_ones:
        wait_for(job.pk, "completed", within=30)
        assert history_of(job.pk) == ["completed"]
    done = wait_for(due.pk, "completed", within=30)
    assert timedelta(0) <= done.started_at - due.run_at < timedelta(seconds=2)
    assert abs(done.result - done.finished_at.timestamp()) > 500  # the clocks really were wrong
    assert Worker.objects.filter(lease_expires_at__gt=timezone.now()).count() == 2


def test_under_a_flood_of_high_jobs_a_low_one_starts_within_its_bound(start_worker, settings):
    """With steps of half a second a Low job is the most urgent after one, whatever keeps coming."""
    aging = Aging(step=0.5, decrement=1.0)
    settings.DILAMME = {**settings.DILAMME, "AGING": aging}
    stop = threading.Event()
    with (
        handler(lambda: time.sleep(0.01), name="filler") as filler,
        handler(lambda: None, name="low", priority=3) as low,
    ):
        filler.using(priority=1).enqueue_many([{}] * 100)
        start_worker(concurrency=1)

        def flood() -> None:
            while not stop.wait(0.1):
                filler.using(priority=1).enqueue_many([{}] * 30)
            connections.close_all()

        flooding = threading.Thread(target=flood)
        flooding.start()
        try:
            job = low.enqueue()
            done = wait_for(job.pk, "completed", within=20)
        finally:
            stop.set()
            flooding.join()
        waited = (done.started_at - job.run_at).total_seconds()
        # Once it is as urgent as the others it is still younger than those made before it; they are at most
        # a second's worth of claims, so twice the bound is a wide margin on a busy machine.
        assert aging.bound(3) == 1.0
        assert waited < 8
        assert Job.objects.filter(type="filler", status="pending").exists()


def test_a_worker_that_claims_its_own_lost_job_again_lives_on(start_worker, settings):
    """It was taken for lost while a handler ran: both attempts run here, and the second one's end is what counts."""
    settings.DILAMME = {**settings.DILAMME, "SWEEP_INTERVAL": 0.1, "LEASE": 60.0}
    goes_on = {1: threading.Event(), 2: threading.Event()}
    started = {1: threading.Event(), 2: threading.Event()}

    def wait(ctx) -> int:
        started[ctx.attempt].set()
        assert goes_on[ctx.attempt].wait(20)
        return ctx.attempt

    with handler(wait, backoff=Backoff(base=0.01, factor=1.0, cap=0.01)) as task:
        start_worker(concurrency=2)
        job = task.enqueue()
        assert started[1].wait(10)
        Worker.objects.all().delete()
        Job.objects.update(started_at=timezone.now() - timedelta(hours=1))
        assert started[2].wait(10)
        goes_on[1].set()
        after = task.using(priority=1).enqueue()
        goes_on[2].set()
        done = wait_for(job.pk, "completed", within=10)
        assert (done.result, done.attempt) == (2, 2)
        assert history_of(job.pk) == ["lost", "completed"]
        assert wait_for(after.pk, "completed", within=10).attempt == 1


def test_what_a_sweep_takes_back_runs_at_its_time_in_whatever_queue(start_worker, settings):
    """A worker that had never seen work in that queue does not wait for its next poll, which is a minute away."""
    settings.DILAMME = {**settings.DILAMME, "POLL_INTERVAL": 60.0, "SWEEP_INTERVAL": 0.2}
    with handler(lambda: None, name="rare", backoff=Backoff(base=0.2, factor=1.0, cap=0.2)) as task:
        worker = start_worker()
        wait_until(lambda: worker.worker._ears.is_open)
        wait_for(task.enqueue().pk, "completed", within=10)
        job = task.using(queue="seldom", run_at=timezone.now() + timedelta(days=30)).enqueue()
        Job.objects.filter(pk=job.pk).update(
            status="processing", worker_id=uuid.uuid4(), attempt=1, started_at=timezone.now() - timedelta(hours=1)
        )
        assert wait_for(job.pk, "completed", within=15).attempt == 2
