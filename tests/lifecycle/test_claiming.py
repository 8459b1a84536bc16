"""How jobs are taken: order, share, and what is left alone."""

import random
import threading
import uuid
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobs import NewJob, Options, enqueue, enqueue_many, lifecycle
from jobs.claims import Claim
from jobs.lifecycle import Appetite
from jobs.models import Job
from jobs.queries import DjangoSession, Session, WorkerSession
from scheduling import FAST, SLOW, ReadyHeap
from tests.support import handler

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def kind():
    """A type to make jobs of."""
    with handler(lambda: None, name="thing") as task:
        yield task


def claim(session: Session, appetite: Appetite, room: int) -> lifecycle.Claimed:
    """Claim, as a worker does that has nothing to report."""
    return lifecycle.exchange(session, appetite, [], room).claimed


def taken(room: int, queues: list[str] | None = None) -> list[uuid.UUID]:
    """Claim and return the ids in the order of urgency."""
    claims = claim(DjangoSession(), Appetite(uuid.uuid4(), queues), room).claims
    heap: ReadyHeap[Claim] = ReadyHeap(FAST)
    for c in claims:
        heap.push(c, c.claimed_at)
    return [c.id for c in heap.drain()]


def made(age: float = 0.0, **options: object) -> uuid.UUID:
    """Make a job that has been due for `age` seconds."""
    job = enqueue("thing", **options)
    Job.objects.filter(pk=job.pk).update(run_at=timezone.now() - timedelta(seconds=age))
    return job.pk


def test_urgent_jobs_are_taken_first_and_equals_in_order():
    """Priority decides, then age; equal ones are first in, first out."""
    low, first, second, high = made(9, priority=3), made(5), made(4), made(1, priority=1)
    assert taken(1) == [high]
    assert taken(1) == [first]
    assert taken(5) == [second, low]


def test_waiting_makes_a_job_more_urgent():
    """A Low job that waited for 61 s is as urgent as a High one, and older: it goes first."""
    high, low = made(1, priority=1), made(61, priority=3)
    assert taken(1) == [low]
    assert taken(1) == [high]


def test_what_is_blocked_or_not_due_is_left_alone():
    """Only due jobs whose parents are settled are claimed."""
    parent = made()
    enqueue("thing", depends_on=[parent])
    enqueue("thing", run_at=timezone.now() + timedelta(seconds=60))
    assert taken(10) == [parent]


def test_a_worker_takes_from_its_queues_only():
    """`queues` limits the claim; none means all of them."""
    mail, other = made(queue="mail"), made(queue="reports")
    assert taken(10, ["mail", "absent"]) == [mail]
    assert taken(10) == [other]


def test_what_another_transaction_holds_is_skipped_not_waited_for():
    """A locked job is left to whoever locked it; the next ones are taken at once."""
    first, second = made(2), made(1)
    other = WorkerSession()
    with other.transaction():
        other._ready().connection.execute("select from dilamme_job where id = %s for update", [first])
        assert taken(5) == [second]
    other.close()
    assert taken(5) == [first]


def test_a_claim_that_met_only_locks_knows_that_it_left_something():
    """With room for one and the most urgent job locked it takes nothing, and says that there is more."""
    urgent, other = made(1, priority=1), WorkerSession()
    less_urgent = made(1, priority=2)
    with other.transaction():
        other._ready().connection.execute("select from dilamme_job where id = %s for update", [urgent])
        met = claim(DjangoSession(), Appetite(uuid.uuid4()), 1)
        assert (met.claims, met.seen, met.may_have_left_some) == ([], 1, True)
        assert taken(2) == [less_urgent]
    other.close()
    assert taken(1) == [urgent]
    assert not claim(DjangoSession(), Appetite(uuid.uuid4()), 1).may_have_left_some


def test_the_attempt_counts_at_the_claim():
    """Token, start time and worker are set by the claim itself."""
    id_, worker = made(), uuid.uuid4()
    (taken_claim,) = claim(DjangoSession(), Appetite(worker), 5).claims
    job = Job.objects.get(pk=id_)
    assert (job.status, job.attempt, job.worker_id, taken_claim.attempt) == ("processing", 1, worker, 1)
    assert job.started_at is not None


def test_workers_that_claim_together_never_share_a_job():
    """Eight workers at once take each of 400 jobs exactly once."""
    enqueue_many([NewJob("thing", {}, Options(priority=1 + i % 3)) for i in range(400)])
    barrier, taken_ids = threading.Barrier(8), []

    def work():
        session, worker = WorkerSession(), uuid.uuid4()
        barrier.wait()
        while claims := claim(session, Appetite(worker), 7).claims:
            taken_ids.extend(c.id for c in claims)
        session.close()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    leftover = taken(400)
    assert len(taken_ids) + len(leftover) == 400
    assert len({*taken_ids, *leftover}) == 400


@given(seed=st.integers(0, 2**32), room=st.integers(1, 40))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_statement_and_the_heap_agree_on_the_order(seed, room):
    """For random priorities, ages and aging the claim takes exactly what sorting everything would give."""
    chance = random.Random(seed)
    aging = chance.choice([FAST, SLOW])
    Job.objects.all().delete()
    jobs = enqueue_many([NewJob("thing", {}, Options(priority=chance.choice([1, 1.5, 2, 2.25, 3]))) for _ in range(40)])
    # Ages stay a few seconds away from the steps: the two clocks are read a moment apart.
    for job in jobs:
        age = 30 * chance.randint(0, 20) + chance.uniform(4, 26)
        Job.objects.filter(pk=job.pk).update(run_at=timezone.now() - timedelta(seconds=age))
    now = timezone.now()
    rows = list(Job.objects.all())
    rows.sort(
        key=lambda j: (aging.effective(j.priority, (now - j.run_at).total_seconds()), j.run_at, j.created_at, j.pk)
    )
    with connection.cursor():
        from django.test import override_settings

        with override_settings(DILAMME={"AGING": aging}):
            claims = claim(DjangoSession(), Appetite(uuid.uuid4()), room).claims
    assert {c.id for c in claims} == {row.pk for row in rows[:room]}
