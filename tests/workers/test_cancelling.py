"""The table "Asked to cancel" of docs/states.md, and cancellations at the worst moments, with a real worker."""

import asyncio
import os
import random
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from jobs import Abort, Context, Snooze, lifecycle
from jobs.models import Job
from jobs.queries import WorkerSession
from scheduling import Backoff
from tests.support import WorkerThread, handler, history_of, wait_for, wait_until

pytestmark = pytest.mark.django_db(transaction=True)

StartWorker = Callable[..., WorkerThread]

ROUNDS = 500 if os.environ.get("DILAMME_SOAK") else 50
AT_ONCE = Backoff(base=0.01, factor=1.0, cap=0.01)


@dataclass
class Scene:
    """One job that runs, and was asked to stop."""

    worker: WorkerThread
    job: Job
    go_on: threading.Event = field(default_factory=threading.Event)


def let_it_end(scene: Scene) -> None:
    """Let the handler do what it does."""
    scene.go_on.set()


def wait_for_the_timeout(scene: Scene) -> None:
    """Do nothing: the handler is too slow."""


def lose_the_worker(scene: Scene) -> None:
    """Let the job belong to a worker that nobody has heard of for long, and sweep."""
    Job.objects.filter(pk=scene.job.pk).update(worker_id=uuid.uuid4(), started_at="2020-01-01T00:00Z")
    session = WorkerSession()
    lifecycle.rescue(session)
    session.close()


def shut_down(scene: Scene) -> None:
    """Stop the worker, which does not wait for the handler."""
    scene.worker.worker.stop()
    scene.worker.worker.stop()
    scene.worker.thread.join(30)
    scene.go_on.set()


def succeed(ctx: Context) -> str:
    """Return something."""
    return "done"


def fail(ctx: Context) -> None:
    """Raise what is tried again."""
    raise ValueError("no")


def abort(ctx: Context) -> None:
    """Give up."""
    raise Abort("never")


def snooze(ctx: Context) -> None:
    """Put it off."""
    raise Snooze(0)


def check(ctx: Context) -> None:
    """Look whether it is still wanted."""
    wait_until(lambda: ctx.cancelled)
    ctx.check()


TABLE = {  # what the handler does, what happens to the run, its attempts, and what becomes of the job
    "success": (succeed, let_it_end, 3, "completed", "completed"),
    "an error, attempts left": (fail, let_it_end, 3, "cancelled", "cancelled"),
    "an error, no attempts left": (fail, let_it_end, 1, "failed", "dead"),
    "an abort": (abort, let_it_end, 3, "failed", "dead"),
    "a snooze": (snooze, let_it_end, 3, "cancelled", "cancelled"),
    "JobCancelled": (check, let_it_end, 3, "cancelled", "cancelled"),
    "a timeout, attempts left": (succeed, wait_for_the_timeout, 3, "cancelled", "cancelled"),
    "a timeout, no attempts left": (succeed, wait_for_the_timeout, 1, "failed", "dead"),
    "a lost worker, attempts left": (succeed, lose_the_worker, 3, "cancelled", "cancelled"),
    "a lost worker, no attempts left": (succeed, lose_the_worker, 1, "failed", "dead"),
    "a shutdown": (succeed, shut_down, 3, "cancelled", "cancelled"),
}


@pytest.mark.parametrize("ending", TABLE)
def test_a_run_that_was_asked_to_stop_ends_as_the_table_says(start_worker: StartWorker, ending: str) -> None:
    """A requested cancel is never followed by a new attempt, and what is done stays done; the worker goes on."""
    do, happen, attempts, status, kind = TABLE[ending]
    runs, started, go_on = [], threading.Event(), threading.Event()

    def behave(ctx: Context) -> str | None:
        runs.append(ctx.attempt)
        started.set()
        go_on.wait(30)
        return do(ctx)

    timeout = 0.5 if happen is wait_for_the_timeout else None
    with handler(behave, max_attempts=attempts, backoff=AT_ONCE, timeout=timeout) as task:
        scene = Scene(start_worker(concurrency=2), task.enqueue(), go_on)
        child, other = task.using(depends_on=[scene.job.pk]).enqueue(), None
        assert started.wait(10)
        for _ in range(2):  # asked again, it is the same
            assert lifecycle.cancel([scene.job.pk], actor="ada").changed == {scene.job.pk: "processing"}
        happen(scene)
        job = wait_for(scene.job.pk, "completed", "failed", "cancelled")
        assert (job.status, job.attempt, history_of(job.pk)[-1]) == (status, 1, kind)
        go_on.set()
        answer = lifecycle.cancel([job.pk], actor="ada")
        late = "cancelled already" if status == "cancelled" else f"too late to cancel this job: it has {status}"
        assert (answer.changed, answer.refused) == ({}, {job.pk: f"It is {late}."})
        if happen is shut_down:
            start_worker()
        with handler(lambda: None, name="next") as following:
            other = wait_for(following.enqueue().pk, "completed")
        if status != "completed":
            assert wait_for(child.pk, "cancelled").cancelled_because == job.pk
            assert runs == [1]
        job.refresh_from_db()
        assert (other.status, job.status, job.attempt) == ("completed", status, 1)


@pytest.mark.parametrize("kind", ["sync", "async", "interruptible"])
def test_a_cancel_between_claim_and_start_reaches_the_handler_or_keeps_it_from_starting(
    start_worker: StartWorker, kind: str
) -> None:
    """In many rounds at random moments: no handler runs on unsupervised, and none whose job is over is running."""
    running: set[uuid.UUID] = set()
    forever = threading.Event()

    def patient(ctx: Context) -> None:
        running.add(ctx.job_id)
        try:
            while not forever.wait(0.0005):
                ctx.check()
        finally:
            running.discard(ctx.job_id)

    async def patient_async(ctx: Context) -> None:
        running.add(ctx.job_id)
        try:
            while not forever.is_set():
                await asyncio.sleep(60 if kind == "interruptible" else 0.0005)
                ctx.check()
        finally:
            running.discard(ctx.job_id)

    function = patient if kind == "sync" else patient_async
    with handler(function, interruptible=kind == "interruptible") as task:
        start_worker()
        told = 0
        for _ in range(ROUNDS):
            job = task.enqueue()
            forever.wait(random.random() * 0.008)
            answer = lifecycle.cancel([job.pk], actor="ada")
            told += answer.changed[job.pk] == "processing"
            wait_for(job.pk, "cancelled", within=10)
            assert job.pk not in running
        assert told > 0
        forever.set()


def test_a_cancel_of_what_was_claimed_ahead_and_never_started_ends_it(start_worker: StartWorker) -> None:
    """It waits in the worker's heap behind a long run; it is cancelled at once, and never starts."""
    started, go_on, runs = threading.Event(), threading.Event(), []

    def short(n: int) -> None:
        runs.append(n)
        if n == 200:
            started.set()
            assert go_on.wait(20)

    with handler(short) as task:
        task.enqueue_many([{"n": n} for n in range(201)])  # short runs: the worker learns to claim ahead
        rest = [job.pk for job in task.enqueue_many([{"n": n} for n in range(201, 230)])]
        start_worker(concurrency=1)
        assert started.wait(20)
        lifecycle.cancel(rest, actor="ada")
        wait_until(lambda: not Job.objects.filter(pk__in=rest).exclude(status="cancelled").exists())
        go_on.set()
        wait_until(lambda: Job.objects.filter(status="completed").count() == 201)
    assert max(runs) == 200
