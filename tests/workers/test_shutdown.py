"""Stopping in order: nothing is lost, nothing is spent, and it ends in time."""

import asyncio
import signal
import threading
import time

import pytest
from django.db import connection

from jobs import Context, enqueue
from jobs.models import Job, Worker
from tests.support import handler, history_of, status_of, wait_for, wait_for_all, wait_until

pytestmark = pytest.mark.django_db(transaction=True)


def test_it_lets_running_handlers_finish_within_the_grace(start_worker):
    """What runs when the signal comes is completed; what waits is handed back unspent."""
    started = threading.Event()

    def slow() -> str:
        started.set()
        time.sleep(0.5)
        return "done"

    with handler(slow) as task:
        worker = start_worker(concurrency=1)
        first = task.enqueue()
        assert started.wait(10)
        second = task.enqueue()
        assert worker.stop() == 0
        assert status_of(first.pk) == "completed"
        waiting = Job.objects.get(pk=second.pk)
        assert (waiting.status, waiting.attempts_used) == ("pending", 0)
        assert not Worker.objects.filter(pk=worker.worker.worker_id).exists()


@pytest.mark.parametrize("is_async", [False, True])
def test_what_does_not_finish_within_the_grace_is_handed_back(start_worker, is_async):
    """The job is pending at once with all its attempts; another worker need not wait for the lease."""
    release, started = threading.Event(), threading.Event()

    def hang(ctx: Context) -> str:
        started.set()
        if ctx.attempt == 1:
            release.wait(30)
        return f"attempt {ctx.attempt}"

    async def async_hang(ctx: Context) -> str:
        started.set()
        if ctx.attempt == 1:
            await asyncio.sleep(30)
        return f"attempt {ctx.attempt}"

    with handler(async_hang if is_async else hang) as task:
        worker = start_worker(concurrency=1, grace=0.3)
        job = task.enqueue()
        assert started.wait(10)
        begun = time.monotonic()
        threading.Timer(1.0, release.set).start()
        assert worker.stop() == 0
        assert time.monotonic() - begun < 8
        stored = Job.objects.get(pk=job.pk)
        assert (stored.status, stored.attempt, stored.attempts_used) == ("pending", 1, 0)
        assert history_of(job.pk) == ["released"]
        start_worker()
        assert wait_for(job.pk, "completed").result == "attempt 2"


def test_a_second_request_does_not_wait_for_the_grace(start_worker):
    """Asked twice, the worker hands everything back and leaves."""
    release, started = threading.Event(), threading.Event()

    def hang() -> None:
        started.set()
        release.wait(30)

    with handler(hang) as task:
        worker = start_worker(concurrency=1, grace=600)
        job = task.enqueue()
        assert started.wait(10)
        worker.worker.stop()
        worker.worker.stop()
        wait_until(lambda: status_of(job.pk) == "pending", within=5)
        release.set()
        worker.thread.join(timeout=10)
        assert worker.code == 0


@pytest.fixture
def trace_table():
    """A table in which the handlers of `tests.app` leave traces."""
    with connection.cursor() as cursor:
        cursor.execute(
            "drop table if exists trace; create table trace (job_id text, word text, at timestamptz default now())"
        )
    yield traces
    with connection.cursor() as cursor:
        cursor.execute("drop table trace")


def traces(job_id) -> list[str]:
    """Return what was traced about a job, in order."""
    with connection.cursor() as cursor:
        cursor.execute("select word from trace where job_id = %s order by at", [str(job_id)])
        return [row[0] for row in cursor.fetchall()]


def test_sigterm_ends_the_process_with_its_jobs_handed_back(start_worker_process, trace_table):
    """`runworker` exits with 0 within its grace, and the row is back in the queue before that."""
    from tests.app.tasks import trace_and_hang

    job = trace_and_hang.enqueue(seconds=600)
    process = start_worker_process("--grace", "0.5")
    wait_until(lambda: trace_table(job.pk) == ["attempt 1"], within=30)
    process.signal(signal.SIGTERM)
    assert process.wait(10) == 0
    assert status_of(job.pk) == "pending"
    start_worker_process()
    wait_for(job.pk, "completed", within=30)
    assert trace_table(job.pk) == ["attempt 1", "attempt 2"]


def test_kill_nine_costs_an_attempt_and_the_job_runs_again_once(start_worker_process, trace_table):
    """Killed in mid-run, the job runs again after the lease and a sweep, and the lost attempt is in its history."""
    from tests.app.tasks import trace_and_hang

    job = trace_and_hang.enqueue(seconds=600)
    doomed = start_worker_process()
    wait_until(lambda: trace_table(job.pk) == ["attempt 1"], within=30)
    lost_worker = Job.objects.get(pk=job.pk).worker_id
    start_worker_process()
    wait_until(lambda: Worker.objects.count() == 2, within=30)
    doomed.signal(signal.SIGKILL)
    killed = time.monotonic()
    done = wait_for(job.pk, "completed", within=20)
    # lease 2 s + sweep 0.5 s + backoff of at most 1.5 s, and a margin for a busy machine
    assert time.monotonic() - killed < 12
    assert trace_table(job.pk) == ["attempt 1", "attempt 2"]
    assert history_of(job.pk) == ["lost", "completed"]
    lost = done.events.get(kind="lost")
    assert (lost.attempt, lost.worker_id) == (1, lost_worker)


def test_a_job_that_kills_its_process_runs_out_of_attempts(start_worker_process, trace_table):
    """Under a supervisor it starts three times, then it is a dead letter; fifty harmless jobs beside it all finish."""
    from tests.app.tasks import append_trace, kill_its_worker

    killer = kill_its_worker.enqueue()
    harmless = append_trace.using(priority=3).enqueue_many([{}] * 50)
    start_worker_process("--processes", "2", "--concurrency", "4")
    job = wait_for(killer.pk, "failed", within=90)
    assert trace_table(killer.pk) == ["attempt 1", "attempt 2", "attempt 3"]
    assert "was lost while it ran this job" in job.last_error
    wait_for_all("completed", len(harmless), within=60)


def test_a_supervisor_that_is_killed_takes_its_children_along(start_worker_process):
    """Children whose supervisor is gone stop in order by themselves."""
    supervisor = start_worker_process("--processes", "2")
    wait_until(lambda: Worker.objects.count() == 2, within=30)
    supervisor.signal(signal.SIGKILL)
    supervisor.wait()
    wait_until(lambda: Worker.objects.count() == 0, within=30)


def test_a_supervisor_passes_the_signal_on_and_reports_the_result(start_worker_process):
    """SIGTERM to the supervisor ends all children in order; the exit code is theirs."""
    supervisor = start_worker_process("--processes", "2")
    wait_until(lambda: Worker.objects.count() == 2, within=30)
    supervisor.signal(signal.SIGTERM)
    assert supervisor.wait(20) == 0
    assert Worker.objects.count() == 0


def test_two_processes_run_ten_thousand_jobs_exactly_once(start_worker_process, trace_table):
    """Each of 10,000 jobs leaves its id in a table once; all are completed, and nothing else moved."""
    from tests.app.tasks import append_trace

    bystander = enqueue("trace", {}, queue="elsewhere")
    jobs = append_trace.enqueue_many([{}] * 10_000)
    for _ in range(2):
        start_worker_process("--queues", "default")
    wait_for_all("completed", 10_000, within=120)
    with connection.cursor() as cursor:
        cursor.execute("select count(*), count(distinct job_id) from trace")
        assert cursor.fetchone() == (10_000, 10_000)
    assert Job.objects.filter(status="completed", attempt=1).count() == len(jobs)
    assert status_of(bystander.pk) == "pending"
