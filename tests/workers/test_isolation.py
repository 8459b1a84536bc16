"""Handlers in processes of their own: kept, killed, replaced, and never left behind."""

import os
import signal
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from django.db import connection

from jobs import lifecycle
from jobs.claims import Claim
from jobs.context import Context
from jobs.errors import ConfigurationError
from jobs.models import Job
from jobs.outcomes import Succeeded
from jobs.registry import JobType
from tests.app import tasks
from tests.support import history_of, process_environment, status_of, wait_for, wait_until
from workers import isolation
from workers.isolation import Children

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, transactional_db: None) -> None:
    """Let children of this process find this test's database and the handlers of `tests.app`."""
    for name, value in process_environment().items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def note(tmp_path: Path) -> Callable[[], list[int]]:
    """Wait for the process ids that a handler has left in the file `pids`, and return them."""
    return lambda: [
        int(pid) for pid in wait_until((tmp_path / "pids").exists) and (tmp_path / "pids").read_text().split()
    ]


def lives(pid: int) -> bool:
    """Whether there is such a process; one that nobody has waited for yet is none."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def gone(*pids: int, within: float = 5) -> None:
    """Wait until none of these processes lives."""
    wait_until(lambda: not any(map(lives, pids)), within=within, what=f"the end of {pids}")


def result_of(task: Any, *args: Any, **kwargs: Any) -> Any:
    """Return what a job returns."""
    return wait_for(task.enqueue(*args, **kwargs).pk, "completed").result


# Running


def test_one_process_is_kept_for_many_jobs(start_worker):
    """It is not the worker's own; what the handler reports gets through, and the process goes with the worker."""
    worker = start_worker(concurrency=2)
    job = wait_for(tasks.whoami.enqueue().pk, "completed")
    pid = job.result
    assert pid != os.getpid()
    assert {result_of(tasks.whoami) for _ in range(5)} == {pid}
    wait_until(lambda: "logged" in history_of(job.pk))
    assert worker.stop() == 0
    gone(pid)


def test_jobs_that_run_at_once_have_processes_of_their_own(start_worker, tmp_path):
    """No two runs share one, and never are there more than slots."""
    start_worker(concurrency=2)
    paths = [tmp_path / str(number) for number in range(4)]
    jobs = [tasks.isolated_nap.enqueue(str(path), 0.3) for path in paths]
    for job in jobs:
        assert wait_for(job.pk, "completed").result == "rested"
    assert len({path.read_text() for path in paths}) == 2


def test_the_start_of_a_process_is_no_part_of_the_run(start_worker):
    """A timeout far shorter than the import of a project does not end the first run."""
    start_worker()
    job = wait_for(tasks.whoami.using(timeout=0.1).enqueue().pk, "completed", "failed", "pending")
    assert (wait_for(job.pk, "completed").attempts_used, history_of(job.pk).count("failed")) == (1, 0)


def test_parents_are_read_in_the_child(start_worker):
    """`ctx.parents` has the results of what the job waited for."""
    start_worker()
    parents = [tasks.nap.enqueue(0) for _ in range(2)]
    child = wait_for(tasks.isolated_sum.using(depends_on=[p.pk for p in parents]).enqueue().pk, "completed")
    assert child.result == pytest.approx(sum(Job.objects.get(pk=p.pk).result for p in parents))


def test_metadata_is_read_in_the_child(start_worker):
    """`ctx.metadata` has what the caller attached, and is empty for the next job in the same process."""
    start_worker()
    assert result_of(tasks.isolated_metadata.using(metadata={"tenant": "acme"})) == {"tenant": "acme"}
    assert result_of(tasks.isolated_metadata) == {}


def test_an_idle_process_holds_no_connection(start_worker):
    """It closes those to the database after a second, and stays."""
    start_worker()
    pid, backend = result_of(tasks.isolated_backend)

    def is_closed() -> bool:
        with connection.cursor() as cursor:
            cursor.execute("select 1 from pg_stat_activity where pid = %s", [backend])
            return cursor.fetchone() is None

    wait_until(is_closed)
    assert lives(pid)
    assert result_of(tasks.isolated_backend)[0] == pid


@pytest.mark.parametrize(
    ("how", "error"),
    [
        ("raise", "ValueError: in the child"),
        ("transaction", "The handler left a transaction open on the database 'default'; it was rolled back."),
        ("exit", "The process of this handler died: exit code 3."),
        ("crash", "The process of this handler died: signal 11 (Segmentation fault)."),
    ],
)
def test_a_handler_that_ends_badly_fails_its_own_attempt_only(start_worker, how, error):
    """Whether it raises or takes its process along, the attempt says how, and the next job runs."""
    start_worker(concurrency=1)
    first = result_of(tasks.whoami)
    assert wait_for(tasks.isolated_end.enqueue(how).pk, "failed").last_error == error
    assert (result_of(tasks.whoami) == first) is (how in ("raise", "transaction"))


def test_a_copy_that_a_handler_makes_of_its_process_cannot_answer_for_it(start_worker):
    """After a careless fork the answer is the original's, and the process serves on."""
    start_worker(concurrency=1)
    pid = result_of(tasks.whoami)
    assert result_of(tasks.isolated_end, "fork") == "parent"
    assert result_of(tasks.whoami) == pid


# Stopping a run


def test_a_run_past_its_timeout_is_killed_and_its_slot_is_free(start_worker, tmp_path, note):
    """Also one that holds the interpreter's lock, with the programs that it has started; the next job has the slot."""
    worker = start_worker(concurrency=1)
    job = tasks.isolated_hang.using(timeout=0.5).enqueue(str(tmp_path / "pids"), helper=True)
    pids = note()
    failed = wait_for(job.pk, "failed", within=5)
    assert failed.last_error == "Timed out: it ran longer than the 0.5 s that isolated_hang may take."
    gone(*pids, within=2)
    wait_until(lambda: worker.worker._pool.held == 0, within=2)
    assert result_of(tasks.whoami) not in pids


def test_a_cancelled_job_is_killed(start_worker, tmp_path, note):
    """Nobody waits for the handler to look."""
    worker = start_worker(concurrency=1)
    job = tasks.isolated_hang.enqueue(str(tmp_path / "pids"))
    pids = note()
    lifecycle.cancel([job.pk], actor="user:ada")
    wait_for(job.pk, "cancelled", within=5)
    gone(*pids, within=2)
    wait_until(lambda: worker.worker._pool.held == 0, within=2)
    assert history_of(job.pk) == ["cancel_requested", "cancelled"]
    assert job.events.get(kind="cancelled").error == "Cancelled: its process was ended."


def test_a_stop_that_comes_late_does_not_hit_the_next_run():
    """A context that is stopped after its run has ended leaves the process to whoever has it then."""
    children = Children(None)
    try:
        pids = []
        for _ in range(2):
            claim = Claim(uuid.uuid4(), "whoami", "default", 2.0, "{}", 1, 0, 3, 0.0, 0.0, 0.0)
            context = Context(claim)
            outcome = children.run(claim, context, lambda: None)
            assert isinstance(outcome, Succeeded)
            pids.append(int(outcome.result))
            context.stop()
        assert pids[0] == pids[1]
    finally:
        children.close()
    gone(*pids)


# Replacing


def test_a_process_is_replaced_after_so_many_jobs(start_worker, settings):
    """With ISOLATION_MAX_JOBS of 2 the third run has another one, and the first is gone."""
    settings.DILAMME = {**settings.DILAMME, "ISOLATION_MAX_JOBS": 2}
    start_worker(concurrency=1)
    pids = [result_of(tasks.whoami) for _ in range(4)]
    assert (pids[0], pids[2]) == (pids[1], pids[3])
    assert pids[0] != pids[2]
    gone(*pids)


def test_a_process_that_has_grown_is_replaced(start_worker, settings):
    """Beyond ISOLATION_MAX_MEMORY after a run it gives way; below it stays, and with None always."""
    settings.DILAMME = {**settings.DILAMME, "ISOLATION_MAX_MEMORY": 400}
    start_worker(concurrency=1)
    slim = result_of(tasks.whoami)
    assert result_of(tasks.whoami, megabytes=500) == slim
    gone(slim)
    settings.DILAMME = {**settings.DILAMME, "ISOLATION_MAX_MEMORY": None}
    grown = result_of(tasks.whoami, megabytes=500)
    assert result_of(tasks.whoami) == grown != slim


def test_a_process_that_does_not_leave_is_killed(start_worker, settings, monkeypatch):
    """A thread that a handler has left behind keeps it for a while only."""
    monkeypatch.setattr(isolation, "_LEAVE_LIMIT", 0.2)
    settings.DILAMME = {**settings.DILAMME, "ISOLATION_MAX_JOBS": 2}
    start_worker(concurrency=1)
    pid = result_of(tasks.whoami)
    assert result_of(tasks.isolated_end, "thread") == "thread"
    gone(pid)


def test_a_process_that_died_while_idle_costs_nothing(start_worker):
    """The next job gets a new one at its first attempt."""
    worker = start_worker(concurrency=1)
    pid = result_of(tasks.whoami)
    os.kill(pid, signal.SIGKILL)
    (idle,) = worker.worker._pool._children._idle
    wait_until(lambda: not idle.is_alive)
    job = wait_for(tasks.whoami.enqueue().pk, "completed")
    assert (job.attempts_used, history_of(job.pk).count("failed")) == (1, 0)
    assert job.result != pid


def test_a_process_that_cannot_start_costs_no_attempt(start_worker, monkeypatch, capfd):
    """The job is put back, and says why."""
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "no_such_settings")
    start_worker(concurrency=1)
    job = tasks.whoami.enqueue()
    wait_until(lambda: history_of(job.pk) == ["released"])
    stored = Job.objects.get(pk=job.pk)
    assert (stored.status, stored.attempts_used) == ("pending", 0)
    assert stored.last_error == (
        "The process for this handler could not be started: ModuleNotFoundError: No module named 'no_such_settings'."
    )
    assert "Traceback" in capfd.readouterr().err


# The end of the worker


def test_what_runs_when_the_worker_stops_may_finish(start_worker_process, tmp_path, note):
    """A SIGTERM that a service manager sends to every process of the service ends no run within the grace."""
    job = tasks.isolated_nap.enqueue(str(tmp_path / "pids"), 1.0)
    worker = start_worker_process("--grace", "20")
    (pid,) = note()
    os.kill(pid, signal.SIGTERM)
    worker.signal(signal.SIGTERM)
    assert worker.wait(15) == 0
    assert wait_for(job.pk, "completed").result == "rested"
    gone(pid)


def test_what_does_not_finish_within_the_grace_is_killed_and_handed_back(start_worker_process, tmp_path, note):
    """The job is pending with all its attempts, and nothing of its run is left."""
    job = tasks.isolated_hang.enqueue(str(tmp_path / "pids"), helper=True)
    worker = start_worker_process("--grace", "0.3")
    pids = note()
    worker.signal(signal.SIGTERM)
    assert worker.wait(10) == 0
    assert (status_of(job.pk), Job.objects.get(pk=job.pk).attempts_used) == ("pending", 0)
    gone(*pids, within=2)


def test_no_child_outlives_a_worker_that_is_killed(start_worker_process, tmp_path, note):
    """Neither one that is idle nor one that holds the interpreter's lock, with its helper, notices late."""
    worker = start_worker_process("--concurrency", "2")
    idle = result_of(tasks.whoami)
    nap = tmp_path / "nap"
    tasks.isolated_nap.enqueue(str(nap), 600)
    wait_until(nap.exists)
    tasks.isolated_hang.enqueue(str(tmp_path / "pids"), helper=True)
    pids = {idle, int(nap.read_text()), *note()}
    assert all(map(lives, pids))
    worker.signal(signal.SIGKILL)
    killed = time.monotonic()
    gone(*pids)
    assert time.monotonic() - killed < 3


def test_an_idle_child_goes_with_a_killed_worker(start_worker_process):
    """Nothing runs there, and it sees that its line is cut."""
    worker = start_worker_process()
    pid = result_of(tasks.whoami)
    worker.signal(signal.SIGKILL)
    gone(pid)


def test_a_copy_of_the_worker_keeps_no_child_alive(start_worker_process, tmp_path, note):
    """What a handler in a thread has forked has the worker's end of every line open; the worker's death is seen."""
    worker = start_worker_process("--concurrency", "2")
    nap = tmp_path / "nap"
    tasks.isolated_nap.enqueue(str(nap), 600)
    wait_until(nap.exists)
    tasks.fork_in_worker.enqueue(str(tmp_path / "pids"))
    (copy,) = note()
    try:
        worker.signal(signal.SIGKILL)
        gone(int(nap.read_text()))
        assert lives(copy)
    finally:
        os.kill(copy, signal.SIGKILL)


# Declaring


@pytest.mark.parametrize("isolation", ["fiber", None, True, []])
def test_an_isolation_that_does_not_exist_is_refused(isolation):
    """The error shows the value, and both that exist."""
    with pytest.raises(ConfigurationError) as caught:
        JobType("odd", lambda: None, isolation=isolation)
    assert str(caught.value) == f"odd: isolation is {isolation!r}; use 'thread' or 'process'."


def test_an_async_handler_cannot_be_isolated():
    """Its loop is shared, so the error says what to do instead."""

    async def wait(ctx: Context) -> None: ...

    with pytest.raises(ConfigurationError) as caught:
        JobType("odd", wait, isolation="process")
    assert str(caught.value) == "odd: isolation='process' is for sync handlers; declare it with def."
