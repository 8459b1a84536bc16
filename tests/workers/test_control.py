"""What handlers, callers and operators may say about a run, as a real worker carries it out."""

import asyncio
import os
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from jobs import Abort, Context, Retry, Snooze, lifecycle
from jobs.models import Job
from scheduling import Backoff
from tests.support import WorkerThread, handler, history_of, wait_for, wait_until

pytestmark = pytest.mark.django_db(transaction=True)

StartWorker = Callable[..., WorkerThread]

ROUNDS = 500 if os.environ.get("DILAMME_SOAK") else 50
AT_ONCE = Backoff(base=0.01, factor=1.0, cap=0.01)
NEVER = Backoff(base=3600.0, factor=1.0, cap=3600.0)


# What a handler raises


@pytest.mark.parametrize("is_async", [False, True])
def test_a_snooze_spends_no_attempt(start_worker: StartWorker, is_async: bool) -> None:
    """A job with a single attempt may put itself off as often as it likes; the history has each reason."""

    def sleepy(ctx: Context) -> int:
        if ctx.attempt < 4:
            raise Snooze(0.01, f"not yet: {ctx.attempt}")
        return ctx.attempt

    async def sleepy_async(ctx: Context) -> int:
        return sleepy(ctx)

    with handler(sleepy_async if is_async else sleepy, max_attempts=1, backoff=NEVER) as task:
        start_worker()
        job = wait_for(task.enqueue().pk, "completed")
        assert (job.attempts_used, job.attempt, job.last_error, job.result) == (1, 4, "", 4)
        assert history_of(job.pk) == ["snoozed", "snoozed", "snoozed", "completed"]
        assert job.events.order_by("id").first().error == "not yet: 1"


def test_a_snooze_lasts_as_long_as_was_asked_for(start_worker: StartWorker) -> None:
    """It does not come back sooner, whatever else the worker does meanwhile."""
    times = []

    def sleepy() -> None:
        times.append(time.monotonic())
        if len(times) == 1:
            raise Snooze(0.5)

    with handler(sleepy) as task:
        start_worker()
        wait_for(task.enqueue().pk, "completed")
    assert 0.5 <= times[1] - times[0] < 5


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), "soon", None])
def test_a_snooze_for_no_number_of_seconds_is_a_failed_attempt(start_worker: StartWorker, seconds: Any) -> None:
    """It neither comes back at once for ever nor waits for ever."""

    def confused() -> None:
        raise Snooze(seconds)

    with handler(confused, max_attempts=2, backoff=AT_ONCE) as task:
        start_worker()
        job = wait_for(task.enqueue().pk, "failed")
        assert job.last_error == f"Snooze: Call again in {seconds} s."
        assert history_of(job.pk) == ["failed", "dead"]


def test_an_abort_is_a_dead_letter_at_once(start_worker: StartWorker) -> None:
    """Whatever attempts are left; what waits for it is cancelled."""

    def hopeless() -> None:
        raise Abort("there is no such customer")

    with handler(hopeless, max_attempts=5, retry_on=(Abort,)) as task:
        start_worker()
        job = task.enqueue()
        child = task.using(depends_on=[job.pk]).enqueue()
        job = wait_for(job.pk, "failed")
        assert (job.attempts_used, job.last_error) == (1, "Abort: there is no such customer")
        assert history_of(job.pk) == ["dead"]
        assert wait_for(child.pk, "cancelled").cancelled_because == job.pk


def test_a_handler_says_itself_when_it_is_tried_again(start_worker: StartWorker) -> None:
    """`Retry(after=...)` spends an attempt and overrules the backoff of its type."""
    times = []

    def limited() -> None:
        times.append(time.monotonic())
        if len(times) < 3:
            raise Retry(after=0.3, reason="the server asks for patience")

    with handler(limited, backoff=NEVER) as task:
        start_worker()
        job = wait_for(task.enqueue().pk, "completed")
        assert job.attempts_used == 3
        assert history_of(job.pk) == ["failed", "failed", "completed"]
        assert job.events.order_by("id").first().error == "Retry: the server asks for patience"
    assert all(0.3 <= gap < 5 for gap in (times[1] - times[0], times[2] - times[1]))


def test_the_last_retry_is_a_dead_letter(start_worker: StartWorker) -> None:
    """To ask for another attempt does not make one."""

    def limited() -> None:
        raise Retry(after=0)

    with handler(limited, max_attempts=3, backoff=NEVER) as task:
        start_worker()
        job = wait_for(task.enqueue().pk, "failed")
        assert (job.attempts_used, history_of(job.pk)) == (3, ["failed", "failed", "dead"])


@pytest.mark.parametrize("after", [-1, float("nan"), float("inf"), "soon", None, True])
def test_a_retry_after_no_number_of_seconds_gets_the_types_backoff(start_worker: StartWorker, after: Any) -> None:
    """It neither comes back at once for ever nor waits for ever."""

    def confused(ctx: Context) -> None:
        if ctx.attempt == 1:
            raise Retry(after=after)

    with handler(confused, backoff=AT_ONCE) as task:
        start_worker()
        wait_for(task.enqueue().pk, "completed", within=5)


class Broken(ValueError):
    """A kind of ValueError."""


@pytest.mark.parametrize(("rules", "error", "attempts"), [
    ({"retry_on": (ValueError,)}, ValueError("x"), 2),
    ({"retry_on": (ValueError,)}, Broken("x"), 2),
    ({"retry_on": (Broken,)}, ValueError("x"), 1),
    ({"retry_on": (ConnectionError, TimeoutError)}, TimeoutError("x"), 2),
    ({"give_up_on": (Broken,)}, ValueError("x"), 2),
    ({"give_up_on": (ValueError,)}, Broken("x"), 1),
    ({"retry_on": (ValueError,), "give_up_on": (Broken,)}, Broken("x"), 1),
    ({"retry_on": (ValueError,), "give_up_on": (Broken,)}, ValueError("x"), 2),
    ({"retry_on": (ValueError,)}, Retry(after=0), 2),
    ({"give_up_on": (Exception,)}, Retry(after=0), 2),
    ({"give_up_on": (Exception,)}, Snooze(0), 3),
])  # fmt: skip
def test_a_type_says_what_is_tried_again(
    start_worker: StartWorker, rules: dict[str, Any], error: Exception, attempts: int
) -> None:
    """By class, subclasses included; what a handler asks for itself is above these rules."""
    runs = []

    def failing() -> None:
        runs.append(1)
        if len(runs) < 3 or not isinstance(error, Snooze):
            raise error

    with handler(failing, max_attempts=2, backoff=AT_ONCE, **rules) as task:
        start_worker()
        wait_for(task.enqueue().pk, "failed", "completed")
    assert len(runs) == attempts


# Time


def test_the_timeout_of_a_job_comes_before_that_of_its_type(start_worker: StartWorker) -> None:
    """In both directions: a shorter one ends it, a longer one lets it run on."""

    def slow(ctx: Context, seconds: float) -> bool:
        return wait_until(lambda: ctx.cancelled or time.monotonic() > ends[seconds], within=60)

    ends = {30.0: time.monotonic() + 30, 0.6: time.monotonic() + 5}
    with handler(slow, timeout=10, max_attempts=1, name="patient") as task:
        start_worker()
        job = wait_for(task.using(timeout=0.2).enqueue(30.0).pk, "failed", within=8)
        assert job.last_error == "Timed out: it ran longer than the 0.2 s that patient may take."
    with handler(slow, timeout=0.2, max_attempts=1, name="hasty") as task:
        ends[0.6] = time.monotonic() + 0.6
        wait_for(task.using(timeout=30).enqueue(0.6).pk, "completed")
        assert wait_for(task.enqueue(30.0).pk, "failed").last_error.startswith(
            "Timed out: it ran longer than the 0.2 s"
        )


def test_a_job_that_is_claimed_too_late_is_not_started(start_worker: StartWorker) -> None:
    """It is cancelled as expired, with what waits for it; one that is still in time runs."""
    runs = []
    with handler(lambda mark: runs.append(mark), name="mark") as task:
        late = task.using(expires_at=timezone.now() + timedelta(seconds=0.05)).enqueue("late")
        child = task.using(depends_on=[late.pk]).enqueue("child")
        anyway = task.using(depends_on=[late.pk], on_failure="run").enqueue("anyway")
        timely = task.using(expires_at=timezone.now() + timedelta(minutes=5)).enqueue("timely")
        wait_until(lambda: timezone.now() > late.expires_at)
        start_worker()
        wait_for(late.pk, "cancelled")
        assert (history_of(late.pk), wait_for(child.pk, "cancelled").cancelled_because) == (["expired"], late.pk)
        for job in (anyway, timely):
            wait_for(job.pk, "completed")
    assert sorted(runs) == ["anyway", "timely"]


def test_a_run_that_began_in_time_may_end_later(start_worker: StartWorker) -> None:
    """What expires is the wish to have it started."""
    with handler(lambda: wait_until(lambda: timezone.now() > expires_at), name="slow") as task:
        start_worker()
        expires_at = timezone.now() + timedelta(seconds=0.7)
        job = wait_for(task.using(expires_at=expires_at).enqueue().pk, "completed")
        assert job.finished_at > expires_at


# Cancelled while it runs


def test_an_interruptible_handler_stops_at_its_await(start_worker: StartWorker) -> None:
    """Within moments, without looking; what it cleans up is awaited, and the worker goes on."""
    started, stopped = threading.Event(), []

    async def patient() -> None:
        started.set()
        try:
            await asyncio.sleep(60)
        finally:
            stopped.append(time.monotonic())
            await asyncio.sleep(0)
            stopped.append("clean")

    with handler(patient, interruptible=True) as task, handler(lambda: None, name="next") as following:
        start_worker(concurrency=1)
        job = task.enqueue()
        assert started.wait(10)
        asked = time.monotonic()
        lifecycle.cancel([job.pk], actor="ada")
        wait_for(job.pk, "cancelled", within=5)
        assert stopped[0] - asked < 0.5
        assert stopped[1] == "clean"
        assert history_of(job.pk) == ["cancel_requested", "cancelled"]
        wait_for(following.enqueue().pk, "completed")


def test_an_interruption_that_a_handler_survives_leaves_it_its_success(start_worker: StartWorker) -> None:
    """Who catches it and returns has done the work."""
    started = threading.Event()

    async def stubborn() -> str:
        started.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return "done all the same"

    with handler(stubborn, interruptible=True) as task:
        start_worker()
        job = task.enqueue()
        assert started.wait(10)
        lifecycle.cancel([job.pk], actor="ada")
        assert wait_for(job.pk, "completed", "cancelled").result == "done all the same"


def test_a_handler_that_is_not_interruptible_is_asked_only(start_worker: StartWorker) -> None:
    """It goes on at its await, sees the wish, and may end as it likes."""
    contexts, go_on = [], threading.Event()

    async def careful(ctx: Context) -> bool:
        contexts.append(ctx)
        await asyncio.to_thread(go_on.wait, 30)
        return ctx.cancelled

    with handler(careful) as task:
        start_worker()
        job, other = task.enqueue(), task.enqueue()
        wait_until(lambda: len(contexts) == 2)
        lifecycle.cancel([job.pk], actor="ada")
        wait_until(lambda: [ctx.cancelled for ctx in contexts] == [ctx.job_id == job.pk for ctx in contexts])
        assert Job.objects.get(pk=job.pk).phase() == "cancelling"
        go_on.set()
        assert (wait_for(job.pk, "completed").result, wait_for(other.pk, "completed").result) == (True, False)
