"""Jobs flow through a real worker: sync and async, good and bad."""

import asyncio
import threading
import time
from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone

from jobs import Context, JobCancelled, NewJob, Options, enqueue, enqueue_many, lifecycle
from jobs.models import Job, JobEvent
from jobs.queries import connect
from scheduling import Backoff
from tests.support import handler, history_of, wait_for, wait_for_all, wait_until

pytestmark = pytest.mark.django_db(transaction=True)

AT_ONCE = Backoff(base=0.01, factor=1.0, cap=0.01)


def test_sync_and_async_handlers_run_and_keep_their_results(start_worker):
    """A sync handler runs in a thread, an async one on the loop; both get typed arguments."""

    def add(a: int, b: int = 1) -> int:
        return a + b

    async def shout(text: str) -> dict[str, str]:
        await asyncio.sleep(0)
        return {"text": text.upper()}

    with handler(add) as sync, handler(shout) as later:
        start_worker()
        first, second = sync.enqueue(2), later.enqueue(text="ho")
        assert wait_for(first.pk, "completed").result == 3
        assert wait_for(second.pk, "completed").result == {"text": "HO"}


def test_a_job_committed_runs_and_one_rolled_back_never_existed(start_worker):
    """The job is seen after the commit only, and finds what the transaction wrote."""
    seen = []

    def look(marker: str) -> None:
        seen.append((marker, Job.objects.filter(type="test_look").count()))

    with handler(look) as task:
        start_worker()
        with pytest.raises(RuntimeError), transaction.atomic():
            task.enqueue("rolled back")
            raise RuntimeError
        with transaction.atomic():
            job = task.enqueue("committed")
            with pytest.raises(RuntimeError), transaction.atomic():
                task.enqueue("savepoint")
                raise RuntimeError
            time.sleep(0.3)
            assert seen == []
        wait_for(job.pk, "completed")
        assert seen == [("committed", 1)]


def test_it_fails_twice_and_then_succeeds(start_worker):
    """Each failed attempt is kept in the history; the third one completes the job."""

    def flaky(ctx: Context) -> str:
        if ctx.attempt < 3:
            raise ConnectionError(f"attempt {ctx.attempt} went wrong")
        return "at last"

    with handler(flaky, backoff=AT_ONCE) as task:
        start_worker()
        job = wait_for(task.enqueue().pk, "completed")
        assert (job.attempts_used, job.result, job.last_error) == (3, "at last", "")
        errors = list(JobEvent.objects.filter(job=job).order_by("id").values_list("kind", "error"))
        assert errors == [
            ("failed", "ConnectionError: attempt 1 went wrong"),
            ("failed", "ConnectionError: attempt 2 went wrong"),
            ("completed", ""),
        ]


def test_out_of_attempts_it_is_a_dead_letter_with_every_error(start_worker):
    """The default is three attempts; each traceback shows the handler's own line and not ours."""

    def hopeless() -> None:
        raise ValueError("never")

    with handler(hopeless, backoff=AT_ONCE) as task:
        start_worker()
        job = wait_for(task.enqueue().pk, "failed")
        assert (job.attempts_used, job.max_attempts, job.last_error) == (3, 3, "ValueError: never")
        assert history_of(job.pk) == ["failed", "failed", "dead"]
        for event in job.events.all():
            assert 'raise ValueError("never")' in event.traceback
            assert "executor.py" not in event.traceback


class Own(BaseException):
    """An exception that is no Exception."""


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(
    "error",
    [SystemExit(0), SystemExit("x"), KeyboardInterrupt(), GeneratorExit(), Own("own"), asyncio.CancelledError()],
    ids=lambda error: f"{type(error).__name__}({', '.join(map(str, error.args))})",
)
def test_whatever_leaves_a_handler_is_a_failed_attempt(start_worker, error, is_async):
    """SystemExit and its kin are recorded by name; twenty normal jobs run after it and the worker stops in order."""

    def bad() -> None:
        raise error

    async def async_bad() -> None:
        raise error

    with handler(async_bad if is_async else bad, max_attempts=1) as task, handler(lambda: 1, name="fine") as fine:
        worker = start_worker(concurrency=2)
        job = wait_for(task.enqueue().pk, "failed")
        assert job.last_error.startswith(type(error).__name__)
        fine.enqueue_many([{}] * 20)
        wait_for_all("completed", 20)
        assert worker.stop() == 0


def test_a_row_that_cannot_be_run_never_strands_its_batch(start_worker):
    """Of ten jobs claimed together, those that cannot be loaded get their own outcome; all others run."""

    def strict(number: int) -> int:
        return number

    with handler(strict, max_attempts=1) as task:
        jobs = task.enqueue_many([{"number": i} for i in range(10)])
        for index in (0, 4, 9):
            payload = [{"number": 1, "extra": 2}, {"number": "x"}, [1, 2]][index // 4]
            Job.objects.filter(pk=jobs[index].pk).update(payload=payload)
        unknown = Job.objects.create(type="of_another_app", payload={})
        start_worker(concurrency=10)
        wait_for_all("completed", 7)
        errors = [wait_for(jobs[i].pk, "failed").last_error for i in (0, 4, 9)]
        assert errors == [
            "The payload does not fit test_strict: extra: Extra inputs are not permitted.",
            (
                "The payload does not fit test_strict: number: Input should be a valid integer, "
                "unable to parse string as an integer."
            ),
            "The payload is a JSON list, not an object of the handler's arguments.",
        ]
        wait_until(lambda: history_of(unknown.pk) == ["released"])
        stored = Job.objects.get(pk=unknown.pk)
        assert (stored.status, stored.attempts_used) == ("pending", 0)
        assert "knows no handler for the type 'of_another_app'" in stored.last_error
        assert stored.run_at > timezone.now() + timedelta(seconds=20)


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        (float("nan"), "result is nan, which JSON cannot express"),
        ({"a": [1, float("inf")]}, "result.a[1] is inf, which JSON cannot express"),
        ("nul \x00", "result contains a NUL character at position 4"),
        ({"half": "\ud800"}, "result.half contains half of a surrogate pair at position 0"),
        ({1, 2}, "result is of type set, which is not JSON"),
        (object(), "result is of type object, which is not JSON"),
        ("x" * 3_000_000, "result is 3,000,002 bytes of JSON; at most 2,097,152 are stored"),
    ],
    ids=["nan", "infinity", "nul", "surrogate", "set", "object", "too large"],
)
def test_a_result_that_cannot_be_stored_ends_in_a_recorded_outcome(start_worker, value, complaint):
    """The attempt fails with the place and the reason; the neighbour is unaffected and the worker lives."""
    with handler(lambda: value, name="odd", max_attempts=1) as odd, handler(lambda: "ok", name="fine") as fine:
        start_worker()
        bad, good = odd.enqueue(), fine.enqueue()
        assert complaint in wait_for(bad.pk, "failed").last_error
        assert wait_for(good.pk, "completed").result == "ok"


@pytest.mark.parametrize("text", ["nul \x00 inside", "half \ud800 inside"])
def test_an_error_text_that_cannot_be_stored_is_made_storable(start_worker, text):
    """The failure lands, with the unstorable character replaced."""

    def bad() -> None:
        raise ValueError(text)

    with handler(bad, max_attempts=1) as task:
        start_worker()
        assert wait_for(task.enqueue().pk, "failed").last_error.endswith("\ufffd inside")


def test_even_an_error_without_a_text_is_recorded(start_worker):
    """An exception whose own str() raises still fails its attempt, by name."""

    class Nasty(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no")

    def bad() -> None:
        raise Nasty

    with handler(bad, max_attempts=1) as task:
        start_worker()
        assert "Nasty: (its text could not be made)" in wait_for(task.enqueue().pk, "failed").last_error


def test_jobs_run_in_order_of_urgency(start_worker):
    """One slot: High before Medium before Low, first in first out among equals, whatever the payloads are."""
    order = []
    with handler(lambda mark: order.append(mark), name="mark") as task:
        marks = [(3, "low"), (2, "m1"), (1, "high"), (2, "m2"), (1.5, "between")]
        enqueue_many([NewJob(task.name, {"mark": m}, Options(priority=p)) for p, m in marks])
        start_worker(concurrency=1)
        wait_for_all("completed", 5)
    assert order == ["high", "between", "m1", "m2", "low"]


def test_a_scheduled_job_starts_at_its_time_and_not_before(start_worker, settings):
    """Due in a second it starts then, although the worker polls only every half minute."""
    settings.DILAMME = {**settings.DILAMME, "POLL_INTERVAL": 30.0}
    with handler(lambda: None, name="later") as task:
        worker = start_worker()
        job = task.using(run_at=timezone.now() + timedelta(seconds=1)).enqueue()
        done = wait_for(job.pk, "completed", within=10)
        assert done.started_at >= job.run_at
        assert worker.thread.is_alive()


def test_a_running_job_is_told_to_stop(start_worker):
    """A handler that looks is told within moments, stops where it is safe, and its job is cancelled."""
    started = threading.Event()

    def patient(ctx: Context) -> None:
        started.set()
        for _ in range(2000):
            time.sleep(0.005)
            ctx.check()

    with handler(patient) as task:
        start_worker()
        job = task.enqueue()
        assert started.wait(10)
        lifecycle.cancel([job.pk], actor="user:ada")
        wait_for(job.pk, "cancelled", within=5)
        assert history_of(job.pk) == ["cancel_requested", "cancelled"]


def test_without_notifications_a_running_job_is_told_by_the_poll(start_worker, settings):
    """With LISTEN off, work and cancellations are found by polling."""
    settings.DILAMME = {**settings.DILAMME, "LISTEN": False, "POLL_INTERVAL": 0.1}
    started = threading.Event()

    def patient(ctx: Context) -> None:
        started.set()
        wait_until(lambda: ctx.cancelled, within=10)
        raise JobCancelled

    with handler(patient) as task:
        start_worker()
        job = task.enqueue()
        assert started.wait(10)
        lifecycle.cancel([job.pk], actor="user:ada")
        wait_for(job.pk, "cancelled", within=5)


def test_an_async_handler_past_its_timeout_is_cancelled(start_worker):
    """It fails with the limit named, at its next await, and its slot is free again."""
    ended = threading.Event()

    async def slow() -> None:
        try:
            await asyncio.sleep(30)
        finally:
            ended.set()

    with handler(slow, timeout=0.2, max_attempts=1) as task:
        start_worker(concurrency=1)
        job = wait_for(task.enqueue().pk, "failed", within=5)
        assert job.last_error == "Timed out: it ran longer than the 0.2 s that test_slow may take."
        assert ended.wait(5)
        wait_for(task.enqueue().pk, "failed", within=5)


def test_a_sync_handler_past_its_timeout_is_fenced_and_keeps_its_slot_until_it_returns(start_worker):
    """The job is retried meanwhile; what the late handler returns is refused, and all slots come back."""
    release, starts = threading.Event(), []

    def slow(ctx: Context) -> str:
        starts.append(ctx.attempt)
        if ctx.attempt == 1:
            release.wait(20)
            assert ctx.cancelled
            return "too late"
        return "in time"

    with handler(slow, timeout=0.3, backoff=AT_ONCE) as task:
        worker = start_worker(concurrency=2)
        job = wait_for(task.enqueue().pk, "completed", within=10)
        child = task.using(depends_on=[job.pk]).enqueue()
        assert (job.result, job.attempts_used) == ("in time", 2)
        pool = worker.worker._pool
        wait_until(lambda: pool.running == 0)
        assert pool.held == 1
        release.set()
        wait_until(lambda: pool.held == 0)
        wait_for(child.pk, "completed")
        job.refresh_from_db()
        assert job.result == "in time"
        assert history_of(job.pk) == ["failed", "completed"]


def test_two_hundred_timeouts_leave_all_slots_free(start_worker):
    """A pool of four loses no slot to handlers that overrun."""

    def slow(ctx: Context) -> None:
        wait_until(lambda: ctx.cancelled, within=10)

    with handler(slow, timeout=0.02, max_attempts=1) as task:
        worker = start_worker(concurrency=4)
        task.enqueue_many([{}] * 200)
        wait_for_all("failed", 200)
        wait_until(lambda: worker.worker._pool.held == 0)


def test_a_wakeup_that_anybody_may_send_does_no_harm(start_worker):
    """Nonsense on the notification channels is ignored."""
    with handler(lambda: None, name="fine") as task:
        start_worker()
        with connect() as raw:
            for payload in ("", "@", "cancel:", "cancel:nonsense", "\U0001f600", "default@x@y"):
                raw.execute("select pg_notify('dilamme_wakeup', %s), pg_notify('dilamme_control', %s)", [payload] * 2)
        wait_for(task.enqueue().pk, "completed")


def test_drain_ends_when_nothing_is_due(start_worker):
    """With `drain` the worker does what is due, leaves what is not, and ends by itself."""
    with handler(lambda: None, name="fine") as task:
        task.enqueue_many([{}] * 300)
        future = task.using(run_at=timezone.now() + timedelta(hours=1)).enqueue()
        worker = start_worker(drain=True)
        worker.thread.join(timeout=30)
        assert worker.code == 0
        assert Job.objects.filter(status="completed").count() == 300
        assert Job.objects.get(pk=future.pk).status == "pending"


def test_a_child_runs_after_its_parents(start_worker):
    """A chain of three runs in order, across the worker's own settling."""
    order = []
    with handler(lambda mark: order.append(mark), name="mark") as task:
        start_worker()
        with transaction.atomic():
            first = task.enqueue("first")
            second = task.using(depends_on=[first.pk], priority=1).enqueue("second")
            third = task.using(depends_on=[first.pk, second.pk], priority=1).enqueue("third")
        wait_for(third.pk, "completed")
    assert order == ["first", "second", "third"]


def test_a_lock_on_the_most_urgent_job_does_not_stop_the_others(start_worker):
    """Somebody holds a job's row for long: a worker with one slot passes it by and runs what comes after it."""
    with handler(lambda: None, name="fine") as task, connect() as somebody:
        urgent = task.using(priority=1).enqueue()
        others = task.using(priority=2).enqueue_many([{}] * 5)
        with somebody.transaction():
            somebody.execute("select from dilamme_job where id = %s for update", [urgent.pk])
            start_worker(concurrency=1)
            wait_for_all("completed", len(others), within=4)
        wait_for(urgent.pk, "completed", within=10)


def test_enqueue_by_name_is_the_same(start_worker):
    """`enqueue("name", {...})` makes the job that the task's own method makes."""
    with handler(lambda mark: mark, name="mark"):
        start_worker()
        assert wait_for(enqueue("mark", {"mark": 7}, priority=1).pk, "completed").result == 7
