"""Why a job is not running: each answer is held against what then happens."""

import io
import re
import uuid
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.utils import timezone

from jobs import Options, enqueue, enqueue_many, job, lifecycle
from jobs.drafts import NewJob
from jobs.errors import JobNotFound
from jobs.explaining import Why, explain
from jobs.models import Job, Queue, Worker
from jobs.outcomes import Cancelled, Failed
from jobs.queues import limit_queue, pause_queue, pause_type, resume_queue, resume_type
from jobs.registry import registry
from tests.lifecycle.conftest import turns  # noqa: F401  a fixture
from tests.lifecycle.graphs import DEAD, Turns, make
from tests.support import WorkerThread, wait_for


@pytest.fixture
def worker(turns: Turns) -> Worker:  # noqa: F811
    """A live worker for all queues that knows the type `free`; its claims are those of `turns`."""
    return Worker.objects.create(
        id=turns.appetite.worker_id, name="host:1", types=["free", "other"], concurrency=4,
        lease_expires_at=timezone.now() + timedelta(minutes=5),
    )  # fmt: skip


def why(job_: Job) -> list[str]:
    """Return the kinds of reasons for which a job is not running."""
    return [reason.why.value for reason in explain(job_.pk).reasons]


def text(job_: Job) -> str:
    """Return the first reason in words."""
    return explain(job_.pk).reasons[0].text


def claims(turns: Turns, job_: Job) -> bool:  # noqa: F811
    """Whether a claim with room for one takes just this job."""
    turns.appetite.controls.doubt()
    return [claim.id for claim in turns.claim(1)] == [job_.pk]


@pytest.mark.usefixtures("worker")
class TestWaiting:
    """Jobs that are pending."""

    def test_a_job_that_nothing_holds_back_is_next(self, turns: Turns) -> None:  # noqa: F811
        """And it is."""
        waiting = enqueue("free")
        assert why(waiting) == ["ready"]
        assert claims(turns, waiting)

    def test_more_urgent_jobs_are_counted(self, turns: Turns) -> None:  # noqa: F811
        """After so many claims of one job each it is its turn."""
        enqueue_many([NewJob("free", {}, Options(priority=1)) for _ in range(3)])
        waiting = enqueue("free", priority=2)
        enqueue_many([NewJob("free", {}, Options(priority=3)) for _ in range(3)])
        assert text(waiting) == "There are 3 more urgent jobs before it."
        assert [claims(turns, waiting) for _ in range(4)] == [False, False, False, True]

    def test_aging_counts_as_in_the_claim(self, turns: Turns) -> None:  # noqa: F811
        """A low job that has waited for long is before a high one."""
        old = enqueue("free", priority=3)
        Job.objects.filter(pk=old.pk).update(run_at=timezone.now() - timedelta(minutes=5))
        urgent = enqueue("free", priority=1)
        assert text(urgent) == "There is 1 more urgent job before it."
        assert why(old) == ["ready"]
        assert claims(turns, old)

    def test_parents_are_named(self, turns: Turns) -> None:  # noqa: F811
        """Once they have ended it is free."""
        made = make({"a": [], "b": ["a"]})
        parent = made.jobs["a"].pk
        (reason,) = explain(made.jobs["b"].pk).reasons
        assert (reason.why, reason.jobs) == (Why.PARENTS, [parent])
        assert reason.text == f"It waits for {parent} (free, pending)."
        turns.run(made.jobs["a"])
        assert why(made.jobs["b"]) == ["ready"]

    def test_a_job_for_later_says_when(self, turns: Turns) -> None:  # noqa: F811
        """To the time at which it may be claimed."""
        later = enqueue("free", run_at=timezone.now() + timedelta(minutes=3, seconds=1))
        (reason,) = explain(later.pk).reasons
        assert (reason.why, reason.text) == (Why.NOT_DUE, "It is due in 3 min.")
        assert reason.until == later.run_at
        assert not claims(turns, later)

    def test_a_retry_says_when_and_what_failed(self, turns: Turns) -> None:  # noqa: F811
        """The error of the last attempt is beside it."""
        failing = enqueue("free", max_attempts=2)
        turns.run(failing, Failed("boom", delay=100))
        (reason,) = explain(failing.pk).reasons
        assert reason.why == Why.RETRY
        assert re.fullmatch(r"Attempt 1 failed; the next one follows in .*: boom", reason.text)

    def test_pauses_are_told_together(self, turns: Turns) -> None:  # noqa: F811
        """Each has to be lifted before it runs."""
        waiting = enqueue("free", queue="q")
        pause_queue("q")
        pause_type("free", until=timezone.now() + timedelta(hours=1))
        assert why(waiting) == ["queue_paused", "type_paused"]
        resume_queue("q")
        assert (why(waiting), claims(turns, waiting)) == (["type_paused"], False)
        resume_type("free")
        assert (why(waiting), claims(turns, waiting)) == (["ready"], True)

    def test_a_limit_names_who_holds_it(self, turns: Turns) -> None:  # noqa: F811
        """When one of them ends it is free."""
        first, second = enqueue("free", queue="q"), enqueue("free", queue="q")
        limit_queue("q", concurrency=1)
        assert claims(turns, first)
        (reason,) = explain(second.pk).reasons
        assert (reason.why, reason.jobs) == (Why.LIMIT, [first.pk])
        assert not claims(turns, second)
        turns.end(first)
        assert (why(second), claims(turns, second)) == (["ready"], True)

    def test_the_limit_of_a_key_names_who_holds_it(self, turns: Turns) -> None:  # noqa: F811
        """Jobs of another key are not held back."""
        first, second, other = (enqueue("free", queue="q", concurrency_key=key) for key in "aab")
        limit_queue("q", concurrency_per_key=1)
        assert claims(turns, first)
        assert [why(second), why(other)] == [["key_limit"], ["behind"]]
        assert claims(turns, other)

    def test_a_rate_says_when_the_next_may_start(self, turns: Turns) -> None:  # noqa: F811
        """Once the bucket has a token it is free."""
        first, second = enqueue("free", queue="q"), enqueue("free", queue="q")
        limit_queue("q", rate=0.01, burst=1)
        assert claims(turns, first)
        assert (why(second), claims(turns, second)) == (["rate"], False)
        Queue.objects.update(tokens_at=timezone.now() - timedelta(seconds=200))
        assert (why(second), claims(turns, second)) == (["ready"], True)


class TestWithoutWorkers:
    """Jobs that nobody could run."""

    def test_no_worker_is_alive(self, turns: Turns, start_worker: Callable[..., WorkerThread]) -> None:  # noqa: F811
        """With the first one it runs."""
        assert turns.held == {}
        waiting = enqueue("free")
        assert text(waiting) == "No worker is alive: start one with manage.py runworker."
        start_worker()
        wait_for(waiting.pk, "completed")

    def test_nobody_serves_the_queue(self, worker: Worker) -> None:
        """It is told which queues are served."""
        Worker.objects.filter(pk=worker.pk).update(queues=["mail", "slow"])
        waiting = enqueue("free", queue="q")
        assert text(waiting) == "No live worker serves the queue 'q'; they serve mail, slow."

    def test_nobody_knows_the_type(self, worker: Worker) -> None:
        """Its app may be missing on the host of the workers."""
        job(name="unheard_of")(lambda: None)
        try:
            waiting = enqueue("unheard_of")
        finally:
            registry.remove("unheard_of")
        assert worker.types == ["free", "other"]
        assert "knows the type 'unheard_of': is its app installed there?" in text(waiting)


@pytest.mark.usefixtures("worker")
class TestClaimedAndEnded:
    """Jobs that run, and those that have ended."""

    def test_a_running_job_names_its_worker(self, turns: Turns) -> None:  # noqa: F811
        """And that it was asked to stop."""
        running = enqueue("free")
        turns.claim()
        assert text(running) == "It runs on host:1, attempt 1."
        lifecycle.cancel([running.pk], actor="a")
        assert text(running) == "It runs on host:1, attempt 1, and was asked to stop."
        Worker.objects.update(lease_expires_at=timezone.now())
        assert why(running) == ["lost"]

    def test_ended_jobs_say_how(self, turns: Turns) -> None:  # noqa: F811
        """A dead letter with its error, a cancelled one with who or because of whom, an expired one with its time."""
        made = make({"a": [], "b": ["a"]})
        turns.run(made.jobs["a"], DEAD)
        assert text(made.jobs["a"]) == "It is a dead letter after 1 attempts, until somebody retries it: boom"
        assert f"because of the job {made.jobs['a'].pk}, which is failed" in text(made.jobs["b"])
        by_hand = enqueue("free")
        lifecycle.cancel([by_hand.pk], actor="user:ada")
        assert text(by_hand) == "It was cancelled by user:ada."
        done, late = enqueue("free"), enqueue("free", expires_at=timezone.now() + timedelta(hours=1))
        turns.run(done)
        turns.run(late, Cancelled("It was not started in time.", expired=True))
        assert text(done) == "It has completed."
        assert text(late).startswith("It was not started by ")

    def test_a_dead_job_whose_key_is_taken_says_so(self, turns: Turns) -> None:  # noqa: F811
        """A retry would be refused for that reason."""
        dead = enqueue("free", unique_key="k")
        turns.run(dead, DEAD)
        holder = enqueue("free", unique_key="k")
        assert why(dead) == ["ended", "unique_key"]
        assert dead.pk in lifecycle.retry([dead.pk], actor="a").refused
        assert explain(dead.pk).reasons[1].jobs == [holder.pk]

    def test_the_command_prints_every_reason(self, turns: Turns) -> None:  # noqa: F811
        """And refuses what is no job."""
        assert turns.held == {}
        waiting = enqueue("free", queue="q")
        pause_queue("q")
        out = io.StringIO()
        call_command("dilamme", "explain", str(waiting.pk), stdout=out)
        assert out.getvalue() == (f"{waiting.pk} is pending.\n- The queue 'q' is paused, until somebody resumes it.\n")
        with pytest.raises(CommandError, match="'42' is no id of a job"):
            call_command("dilamme", "explain", "42")
        with pytest.raises(CommandError, match="There is no job"):
            call_command("dilamme", "explain", str(uuid.uuid4()))
        with pytest.raises(JobNotFound):
            explain(uuid.uuid4())
