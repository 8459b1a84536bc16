"""What people may do to a job, and what they are told when it is too late."""

import contextlib
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, connections, transaction

from jobs import enqueue, lifecycle
from jobs.claims import Ended
from jobs.lifecycle import Appetite, exchange
from jobs.models import Job, JobDependency
from jobs.outcomes import Failed, Released, Succeeded
from jobs.queries import DjangoSession, connect
from tests.support import handler, history_of, wait_until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def kind():
    """A type to make jobs of, with one attempt."""
    with handler(lambda: None, name="thing", max_attempts=1) as task:
        yield task


def run(outcome, room=1):
    """Claim what is due and end it like this."""
    worker = uuid.uuid4()
    claims = exchange(DjangoSession(), Appetite(worker), [], room).claimed.claims
    exchange(DjangoSession(), Appetite(worker), [Ended(claim, outcome) for claim in claims], 0)


def test_cancelling_a_pending_job_is_final_at_once():
    """It is cancelled with its end time, and the history names who did it."""
    job = enqueue("thing")
    assert lifecycle.cancel([job.pk], actor="user:ada").changed == {job.pk: "cancelled"}
    job.refresh_from_db()
    assert job.finished_at is not None
    assert list(job.events.values_list("kind", "actor")) == [("cancelled", "user:ada")]


def test_a_late_or_repeated_cancel_is_harmless_and_says_so():
    """Nothing changes, and the reason is told for each job."""
    done, gone = enqueue("thing"), uuid.uuid4()
    run(Succeeded())
    cancelled = enqueue("thing")
    lifecycle.cancel([cancelled.pk], actor="a")
    answer = lifecycle.cancel([done.pk, cancelled.pk, gone], actor="a")
    assert answer.changed == {}
    assert answer.refused == {
        done.pk: "It is too late to cancel this job: it has completed.",
        cancelled.pk: "It is cancelled already.",
        gone: "There is no such job.",
    }
    assert history_of(done.pk) == ["completed"]


def test_a_dead_letter_retried_by_hand_gets_a_new_budget():
    """It is pending now, with all its attempts, and its attempt number goes on."""
    job = enqueue("thing")
    run(Failed("boom"))
    assert Job.objects.get(pk=job.pk).status == "failed"
    assert lifecycle.retry([job.pk], actor="user:ada").changed == {job.pk: "pending"}
    job.refresh_from_db()
    assert (job.attempt, job.attempts_used, job.finished_at, job.last_error) == (1, 0, None, "boom")
    run(Succeeded())
    job.refresh_from_db()
    assert (job.status, job.attempt, job.last_error) == ("completed", 2, "")
    assert history_of(job.pk) == ["dead", "retried", "completed"]


def test_what_cannot_be_retried_is_refused_with_the_way_out():
    """A completed job is not run again in place, a pending one needs no retry."""
    done = enqueue("thing")
    run(Succeeded())
    pending = enqueue("thing")
    assert lifecycle.retry([done.pk, pending.pk], actor="a").refused == {
        done.pk: "It has completed; enqueue a new job to run it again.",
        pending.pk: "It is pending; only failed and cancelled jobs can be retried.",
    }


def test_an_action_belongs_to_the_callers_transaction():
    """Rolled back, a cancellation has not happened."""
    job = enqueue("thing")
    with pytest.raises(RuntimeError), transaction.atomic():
        lifecycle.cancel([job.pk], actor="a")
        raise RuntimeError
    assert Job.objects.get(pk=job.pk).status == "pending"
    assert history_of(job.pk) == []


def test_cancel_and_end_of_a_run_at_the_same_moment_agree():
    """In whichever order they meet, the job ends once, and the cancel tells the truth about it."""
    for _ in range(30):
        job, worker = enqueue("thing"), uuid.uuid4()
        (claim,) = exchange(DjangoSession(), Appetite(worker), [], 1).claimed.claims
        barrier, answers = threading.Barrier(2), []

        def cancel(job=job, barrier=barrier, answers=answers):
            barrier.wait()
            answers.append(lifecycle.cancel([job.pk], actor="a"))
            connections.close_all()

        thread = threading.Thread(target=cancel)
        thread.start()
        barrier.wait()
        exchange(DjangoSession(), Appetite(worker), [Ended(claim, Succeeded())], 0)
        thread.join()
        assert Job.objects.get(pk=job.pk).status == "completed"
        (answer,) = answers
        expected = ["cancel_requested", "completed"] if answer.changed else ["completed"]
        assert history_of(job.pk) == expected


@contextlib.contextmanager
def cancel_waiting_for_what_happens(ids):
    """Do what the block does in a transaction, commit it once a cancel waits for it, and hold the cancel's answer."""
    answers = []

    def cancel():
        try:
            return lifecycle.cancel(ids, actor="user:ada")
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool, connect() as watcher:
        with transaction.atomic():
            yield answers
            waits = pool.submit(cancel)
            waiting = "select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
            wait_until(lambda: watcher.execute(waiting).rowcount == 1, what="the cancel waits")
        answers.append(waits.result(timeout=20))


def test_a_cancel_that_waits_for_a_claim_asks_the_run_to_stop():
    """The job was pending when the cancel began and runs when it is written: it is asked, and the others are over."""
    before, job, behind = (enqueue("thing", priority=priority) for priority in (3, 1, 3))
    worker = uuid.uuid4()
    with cancel_waiting_for_what_happens([before.pk, job.pk, behind.pk]) as answers:
        (claim,) = exchange(DjangoSession(), Appetite(worker), [], 1).claimed.claims
        assert claim.id == job.pk
    (answer,) = answers
    assert answer.changed == {before.pk: "cancelled", job.pk: "processing", behind.pk: "cancelled"}
    assert answer.refused == {}
    job.refresh_from_db()
    assert (job.status, job.worker_id, job.finished_at) == ("processing", worker, None)
    assert job.cancel_requested_at is not None
    assert history_of(job.pk) == ["cancel_requested"]


def test_a_cancel_that_waits_for_a_hand_back_ends_the_job():
    """The job ran when the cancel began and is pending when it is written: PostgreSQL checks the row as it was, too."""
    job, worker = enqueue("thing"), uuid.uuid4()
    (claim,) = exchange(DjangoSession(), Appetite(worker), [], 1).claimed.claims
    with cancel_waiting_for_what_happens([job.pk]) as answers:
        exchange(DjangoSession(), Appetite(worker), [Ended(claim, Released("shutdown"))], 0)
    (answer,) = answers
    assert (answer.changed, answer.refused) == ({job.pk: "cancelled"}, {})
    job.refresh_from_db()
    assert (job.status, job.worker_id, job.finished_at is None) == ("cancelled", None, False)
    assert history_of(job.pk) == ["released", "cancelled"]


def test_a_parents_end_releases_its_child_once():
    """The child waits for both parents, and becomes due when the last one completes."""
    first, second = enqueue("thing"), enqueue("thing")
    child = enqueue("thing", depends_on=[first.pk, second.pk])
    assert child.unmet == 2
    run(Succeeded(), room=1)
    assert Job.objects.get(pk=child.pk).unmet == 1
    run(Succeeded(), room=1)
    released = Job.objects.get(pk=child.pk)
    assert (released.unmet, released.status) == (0, "pending")
    assert released.run_at > child.run_at


def test_a_failed_parent_settles_only_the_edges_that_say_run():
    """With on_failure=run the child goes on; by default it waits for the parent's retry. Told once, not twice."""
    parent = enqueue("thing")
    waits = enqueue("thing", depends_on=[parent.pk])
    runs = enqueue("thing", depends_on=[parent.pk], on_failure="run")
    run(Failed("boom"))
    assert Job.objects.get(pk=waits.pk).unmet == 1
    assert Job.objects.get(pk=runs.pk).unmet == 0
    lifecycle.cancel([runs.pk], actor="a")
    lifecycle.retry([parent.pk], actor="a")
    run(Succeeded())
    assert Job.objects.get(pk=waits.pk).unmet == 0
    assert Job.objects.get(pk=runs.pk).unmet == 0
    assert not JobDependency.objects.filter(settled=False).exists()


def test_a_cancelled_parent_settles_its_edges_like_any_other_end():
    """A pending parent that is cancelled lets its on_failure=run child go."""
    parent = enqueue("thing")
    runs = enqueue("thing", depends_on=[parent.pk], on_failure="run")
    lifecycle.cancel([parent.pk], actor="a")
    assert Job.objects.get(pk=runs.pk).unmet == 0


def test_parents_that_end_together_release_their_child_exactly_once():
    """Twelve parents end at one barrier over four connections, 15 rounds: the child is freed once each time."""
    for _ in range(15):
        parents = [enqueue("thing") for _ in range(12)]
        child = enqueue("thing", depends_on=[parent.pk for parent in parents])
        worker = uuid.uuid4()
        claims = exchange(DjangoSession(), Appetite(worker), [], 12).claimed.claims
        assert len(claims) == 12
        barrier = threading.Barrier(4)

        def end(mine, barrier=barrier, worker=worker):
            barrier.wait()
            for claim in mine:
                exchange(DjangoSession(), Appetite(worker), [Ended(claim, Succeeded())], 0)
            connections.close_all()

        threads = [threading.Thread(target=end, args=(claims[i::4],)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        freed = Job.objects.get(pk=child.pk)
        assert (freed.unmet, freed.status) == (0, "pending")
        run(Succeeded())
        assert Job.objects.get(pk=child.pk).status == "completed"
    assert connection.is_usable()
