"""Unique keys: who holds one, what an enqueue that meets it does, and that a running job is never changed by one."""

import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, connections, transaction
from django.utils import timezone

from jobs import NewJob, Options, Task, enqueue, enqueue_many, lifecycle
from jobs.errors import InvalidJob, UniqueKeyHeld
from jobs.models import Job
from jobs.outcomes import Cancelled, Failed, Outcome, Released, Snoozed, Succeeded
from jobs.queries import WorkerSession
from tests.lifecycle.graphs import DEAD, Turns
from tests.support import WorkerThread, handler, wait_for

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("free_type")]

CALLERS = 20
BOTH, WAITING = "pending_and_processing", "pending"


@pytest.fixture
def turns() -> Iterator[Turns]:
    """A worker's turns, without a worker."""
    session = WorkerSession()
    yield Turns(session)
    session.close()


def row_of(job: Job) -> dict[str, Any]:
    """Return a job as it is stored, whole."""
    return Job.objects.filter(pk=job.pk).values().get()


def at_once(call: Callable[[], Any], callers: int = CALLERS) -> list[Any]:
    """Return what as many threads get that call this together: values, and errors as values."""
    barrier = threading.Barrier(callers)

    def caller() -> Any:
        barrier.wait(20)
        try:
            return call()
        except InvalidJob as error:
            return error
        finally:
            connections.close_all()

    with ThreadPoolExecutor(callers) as pool:
        return [future.result(60) for future in [pool.submit(caller) for _ in range(callers)]]


# A job that runs


@pytest.mark.parametrize("on_conflict", ["return", "replace", "raise"])
def test_twenty_who_meet_a_running_job_get_one_answer_and_change_nothing(
    start_worker: Callable[..., WorkerThread], on_conflict: str
) -> None:
    """The row of the running job stays as it is to the last column, and the key never runs twice at once."""
    started, go_on, runs = threading.Event(), threading.Event(), []

    def long(n: int) -> None:
        runs.append(n)
        started.set()
        assert go_on.wait(30)

    with handler(long) as task:
        start_worker()
        running = task.using(unique_key="k").enqueue(1)
        assert started.wait(10)
        before = row_of(running)
        answers = at_once(lambda: task.using(unique_key="k", on_conflict=on_conflict).enqueue(2))
        if on_conflict == "raise":
            assert {(type(error), str(error), error.job_id) for error in answers} == {
                (UniqueKeyHeld, f"The unique key 'k' is held by the job {running.pk}.", running.pk)
            }
        else:
            assert {(job.pk, job.created, job.status, job.payload["n"]) for job in answers} == {
                (running.pk, False, "processing", 1)
            }
        assert row_of(running) == before
        go_on.set()
        wait_for(running.pk, "completed")
        assert task.using(unique_key="k").enqueue(3).created
        assert (runs[0], Job.objects.count()) == (1, 2)


def test_of_twenty_who_want_a_free_key_one_gets_it() -> None:
    """The others are told which job it is."""
    answers = at_once(lambda: enqueue("free", unique_key="k"))
    assert len({job.pk for job in answers}) == Job.objects.count() == 1
    assert sorted(job.created for job in answers) == [False] * (CALLERS - 1) + [True]


def test_batches_that_want_the_same_keys_in_any_order_do_not_stand_in_each_others_way() -> None:
    """Each key is made once, and every caller gets a job for each of its keys; deadlocks are met with patience."""
    keys, order = [f"k{n}" for n in range(10)], iter([1, -1] * 5)

    def batch() -> list[Job]:
        wanted = keys[:: next(order)]
        return list(enqueue_many([NewJob("free", {}, Options(unique_key=key)) for key in wanted]))

    answers = at_once(batch, callers=10)
    assert sum(job.created for jobs in answers for job in jobs) == Job.objects.count() == 10
    assert all(sorted(job.unique_key for job in jobs) == keys for jobs in answers)


# Who holds a key


def stay(_: Turns, job: Job) -> None:
    """Do nothing with it."""


def claim(turns: Turns, job: Job) -> None:
    """Let it run."""
    turns.claim()


def end(outcome: Outcome) -> Callable[[Turns, Job], None]:
    """Let it run, and end so."""
    return lambda turns, job: turns.run(job, outcome)


def cancel(_: Turns, job: Job) -> None:
    """Cancel it before it runs."""
    lifecycle.cancel([job.pk], actor="ada")


def retry(outcome: Outcome) -> Callable[[Turns, Job], None]:
    """Let it run, end so, and retry it by hand."""

    def run_and_retry(turns: Turns, job: Job) -> None:
        turns.run(job, outcome)
        lifecycle.retry([job.pk], actor="ada")

    return run_and_retry


def cancel_and_retry(turns: Turns, job: Job) -> None:
    """Cancel it before it runs, and take that back: nobody has ever claimed it."""
    cancel(turns, job)
    lifecycle.retry([job.pk], actor="ada")


HELD = {  # what was done with the job: whether the key is held in the one scope, and in the other
    "ready": (stay, True, True),
    "running": (claim, True, False),
    "waits for its next attempt": (end(Failed("boom", delay=60)), True, False),
    "snoozed": (end(Snoozed(60)), True, False),
    "handed back": (end(Released("stopping")), True, False),
    "completed": (end(Succeeded()), False, False),
    "failed": (end(DEAD), False, False),
    "cancelled while it ran": (end(Cancelled("stopped")), False, False),
    "expired": (end(Cancelled("too late", expired=True)), False, False),
    "cancelled before it ran": (cancel, False, False),
    "failed and retried": (retry(DEAD), True, False),
    "cancelled before it ran and retried": (cancel_and_retry, True, True),
}


@pytest.mark.parametrize("scope", [BOTH, WAITING])
@pytest.mark.parametrize("state", HELD)
def test_a_key_is_held_as_the_table_says(turns: Turns, state: str, scope: str) -> None:
    """For every state that a job can be in, and both scopes: held, or free for the next job."""
    do, *held = HELD[state]
    job = enqueue("free", unique_key="k", unique_scope=scope, max_attempts=2)
    do(turns, job)
    before = row_of(job)
    second = enqueue("free", unique_key="k", unique_scope=scope)
    assert (second.pk == job.pk, second.created) == ((True, False) if held[scope == WAITING] else (False, True))
    assert row_of(job) == before


@pytest.mark.parametrize("scope", [BOTH, WAITING])
@pytest.mark.parametrize("state", ["scheduled", "blocked"])
def test_a_job_that_cannot_run_yet_holds_its_key(state: str, scope: str) -> None:
    """Whether it waits for its time or for a parent."""
    tomorrow = timezone.now() + timedelta(days=1)
    waits = {"run_at": tomorrow} if state == "scheduled" else {"depends_on": [enqueue("free").pk]}
    job = enqueue("free", unique_key="k", unique_scope=scope, **waits)
    assert (job.phase(), enqueue("free", unique_key="k").pk) == (state, job.pk)


def test_with_the_scope_pending_one_runs_and_one_waits(turns: Turns) -> None:
    """What changed while a job ran is seen by one follow-up, however often it was asked for."""
    options = {"unique_key": "k", "unique_scope": WAITING}
    first = enqueue("free", **options)
    turns.claim()
    follow_ups = [enqueue("free", **options) for _ in range(5)]
    assert len({job.pk for job in follow_ups} | {first.pk}) == 2
    turns.end(first, Failed("again", delay=0.0))
    assert Job.objects.filter(status="pending", unique_key="k").count() == 2
    assert {claim.id for claim in turns.claim()} == {first.pk, follow_ups[0].pk}


def test_a_key_that_was_rolled_back_is_free() -> None:
    """A transaction that fails takes the key with the job."""
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        enqueue("free", unique_key="k")
        raise ZeroDivisionError
    assert enqueue("free", unique_key="k").created


def test_the_database_refuses_two_holders() -> None:
    """Whoever writes past this code meets the index."""
    enqueue("free", unique_key="k")
    other = enqueue("free")
    with pytest.raises(IntegrityError, match="dilamme_job_unique_key"):
        Job.objects.filter(pk=other.pk).update(unique_key="k")


# Retried by hand


def test_a_retry_is_refused_while_another_job_has_the_key(turns: Turns) -> None:
    """The text names that job; once it has ended, the retry is possible."""
    job = enqueue("free", unique_key="k")
    lifecycle.cancel([job.pk], actor="ada")
    other = enqueue("free", unique_key="k")
    answer = lifecycle.retry([job.pk], actor="ada")
    assert answer.refused == {job.pk: f"Its unique key 'k' is held by the job {other.pk} by now."}
    assert row_of(job)["status"] == "cancelled"
    turns.run(other)
    assert lifecycle.retry([job.pk], actor="ada").changed == {job.pk: "pending"}


def test_of_two_that_are_retried_at_once_the_first_has_the_key() -> None:
    """The second is refused and names it."""
    jobs = []
    for _ in range(2):
        jobs.append(enqueue("free", unique_key="k"))
        lifecycle.cancel([jobs[-1].pk], actor="ada")
    first, second = (job.pk for job in jobs)
    answer = lifecycle.retry([second, first], actor="ada")
    assert answer.changed == {first: "pending"}
    assert answer.refused == {second: f"Its unique key 'k' is held by the job {first} by now."}


def test_two_that_do_not_hold_the_key_any_more_are_retried_together(turns: Turns) -> None:
    """With the scope pending a job that was claimed once has set its key free for good."""
    jobs = []
    for _ in range(2):
        jobs.append(enqueue("free", unique_key="k", unique_scope=WAITING))
        turns.run(jobs[-1], DEAD)
    answer = lifecycle.retry([job.pk for job in jobs], actor="ada")
    assert answer.changed == {job.pk: "pending" for job in jobs}


def test_a_dependant_whose_key_is_taken_stays_cancelled_and_what_waits_for_it_names_it(turns: Turns) -> None:
    """Its parent comes back without it. When it is retried by hand, what waits for it follows."""
    parent = enqueue("free")
    child = enqueue("free", depends_on=[parent.pk], unique_key="k")
    below = enqueue("free", depends_on=[child.pk])
    lifecycle.cancel([parent.pk], actor="ada")
    other = enqueue("free", unique_key="k")
    answer = lifecycle.retry([parent.pk], actor="ada")
    assert (answer.changed, answer.also) == ({parent.pk: "pending"}, {})
    assert row_of(child)["cancelled_because"] is None
    assert row_of(below)["cancelled_because"] == child.pk
    turns.run(other)
    assert lifecycle.retry([child.pk], actor="ada").also == {below.pk: "pending"}


def test_retries_and_enqueues_of_one_key_at_once_leave_one_holder() -> None:
    """Nobody sees an error of the database."""
    job = enqueue("free", unique_key="k")
    for _ in range(5):
        lifecycle.cancel([job.pk], actor="ada")
        turn = iter(range(10))
        at_once(lambda turn=turn: (next(turn) % 2 and enqueue("free", unique_key="k"))
                or lifecycle.retry([job.pk], actor="ada"), callers=10)  # fmt: skip
        (holder,) = Job.objects.filter(status="pending", unique_key="k")
        lifecycle.cancel([holder.pk], actor="ada")


def test_keys_belong_to_all_types_unless_they_are_made_from_a_payload(free_type: Task[..., None]) -> None:
    """A key that the caller has chosen is as global as it looks."""
    with handler(lambda **_: None, name="other"):
        assert enqueue("free", unique_key="k").pk == enqueue("other", unique_key="k").pk
        assert enqueue("free", {"n": 1}, unique=["n"]).pk != enqueue("other", {"n": 1}, unique=["n"]).pk
    assert uuid.UUID(int=0) not in set(Job.objects.values_list("pk", flat=True))
