"""How jobs are taken back from workers that were lost, and from nobody else."""

import threading
import uuid
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone

from jobs import enqueue, lifecycle
from jobs.claims import Ended
from jobs.lifecycle import Appetite, Presence, exchange
from jobs.models import Job, JobEvent, Worker
from jobs.outcomes import Succeeded
from jobs.queries import DjangoSession, WorkerSession
from tests.support import handler, history_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def kind():
    """A type to make jobs of."""
    with handler(lambda: None, name="thing", max_attempts=2) as task:
        yield task


def claimed_long_ago(worker: uuid.UUID):
    """Make a job that `worker` claimed an hour ago, and return its claim."""
    enqueue("thing")
    (claim,) = exchange(DjangoSession(), Appetite(worker), [], 1).claimed.claims
    Job.objects.filter(pk=claim.id).update(started_at=timezone.now() - timedelta(hours=1))
    return claim


def alive(worker: uuid.UUID) -> None:
    """Give a worker a lease."""
    lifecycle.beat(DjangoSession(), Presence(worker, "host:1", 1, None, []))


def lose(worker: uuid.UUID) -> None:
    """Let the lease of a worker run out."""
    Worker.objects.filter(pk=worker).update(lease_expires_at=timezone.now() - timedelta(seconds=1))


def test_the_jobs_of_a_lost_worker_run_again():
    """After the lease the job is pending with backoff, and the history names the worker."""
    worker = uuid.uuid4()
    alive(worker)
    claim = claimed_long_ago(worker)
    lose(worker)
    changes = lifecycle.rescue(DjangoSession())
    job = Job.objects.get(pk=claim.id)
    assert [change.job_id for change in changes] == [claim.id]
    assert (job.status, job.attempts_used) == ("pending", 1)
    assert f"Worker {worker} was lost" in job.last_error
    assert history_of(job.pk) == ["lost"]


def test_a_long_job_of_a_living_worker_is_left_alone():
    """While the lease stands nothing is rescued, however long a job runs."""
    worker = uuid.uuid4()
    alive(worker)
    claim = claimed_long_ago(worker)
    assert lifecycle.rescue(DjangoSession()) == []
    assert Job.objects.get(pk=claim.id).status == "processing"


def test_a_job_whose_workers_row_is_gone_is_rescued():
    """A pruned worker row does not hide its jobs."""
    claim = claimed_long_ago(uuid.uuid4())
    lifecycle.rescue(DjangoSession())
    assert Job.objects.get(pk=claim.id).status == "pending"


def test_a_new_process_of_the_same_name_does_not_keep_the_dead_ones_jobs_alive():
    """Heartbeats count for the process start that claimed, not for a name."""
    dead, successor = uuid.uuid4(), uuid.uuid4()
    alive(dead)
    claim = claimed_long_ago(dead)
    lose(dead)
    alive(successor)
    assert set(Worker.objects.values_list("name", flat=True)) == {"host:1"}
    lifecycle.rescue(DjangoSession())
    assert Job.objects.get(pk=claim.id).status == "pending"


def test_a_fresh_claim_is_left_alone_before_the_first_heartbeat():
    """A worker that has claimed but not yet beaten is not taken for lost."""
    enqueue("thing")
    exchange(DjangoSession(), Appetite(uuid.uuid4()), [], 1)
    assert lifecycle.rescue(DjangoSession()) == []


def test_lost_in_its_last_attempt_it_is_a_dead_letter():
    """A job that keeps losing its workers runs out of attempts, with the reason."""
    for _ in range(2):
        Job.objects.update(run_at=timezone.now())
        if not Job.objects.exists():
            enqueue("thing")
        exchange(DjangoSession(), Appetite(uuid.uuid4()), [], 1)
        Job.objects.update(started_at=timezone.now() - timedelta(hours=1))
        lifecycle.rescue(DjangoSession())
    job = Job.objects.get()
    assert job.status == "failed"
    assert "was lost" in job.last_error
    assert history_of(job.pk) == ["lost", "dead"]


def test_a_job_that_finishes_while_the_sweep_waits_is_left_alone():
    """The sweep skips a row that its worker is just ending; the end stands."""
    worker = uuid.uuid4()
    claim = claimed_long_ago(worker)
    session = WorkerSession()
    with session.transaction():
        exchange(session, Appetite(worker), [Ended(claim, Succeeded("1"))], 0)
        assert lifecycle.rescue(DjangoSession()) == []
    session.close()
    assert lifecycle.rescue(DjangoSession()) == []
    assert Job.objects.get(pk=claim.id).status == "completed"
    assert history_of(claim.id) == ["completed"]


def test_the_lost_workers_late_word_is_refused():
    """Once rescued and claimed afresh, the old attempt can write nothing."""
    old_worker, new_worker = uuid.uuid4(), uuid.uuid4()
    old = claimed_long_ago(old_worker)
    lifecycle.rescue(DjangoSession())
    Job.objects.update(run_at=timezone.now())
    (new,) = exchange(DjangoSession(), Appetite(new_worker), [], 1).claimed.claims
    late = exchange(DjangoSession(), Appetite(old_worker), [Ended(old, Succeeded('"late"'))], 0)
    assert len(late.recorded.lost) == 1
    job = Job.objects.get(pk=old.id)
    assert (job.status, job.attempt, job.worker_id) == ("processing", new.attempt, new_worker)


def test_a_sweep_takes_more_than_one_batch():
    """Everything overdue is rescued in one sweep, in batches."""
    from jobs import NewJob, enqueue_many

    enqueue_many([NewJob("thing")] * 450)
    exchange(DjangoSession(), Appetite(uuid.uuid4()), [], 450)
    Job.objects.update(started_at=timezone.now() - timedelta(hours=1))
    assert len(lifecycle.rescue(DjangoSession())) == 450
    assert Job.objects.filter(status="pending").count() == 450
    assert JobEvent.objects.filter(kind="lost").count() == 450


def test_two_sweeps_at_once_do_the_work_once():
    """The second sweeper goes away without waiting."""
    claimed_long_ago(uuid.uuid4())
    with transaction.atomic():
        DjangoSession().fetch("try_sweep", sweep="rescue")
        answers = []

        def other():
            session = WorkerSession()
            answers.append(lifecycle.rescue(session))
            session.close()

        thread = threading.Thread(target=other)
        thread.start()
        thread.join(timeout=10)
        assert answers == [[]]
    assert len(lifecycle.rescue(DjangoSession())) == 1
    assert connection.in_atomic_block is False
