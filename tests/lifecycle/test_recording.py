"""How runs that ended are written, and the fence that keeps others out."""

import uuid

import pytest

from jobs import enqueue, lifecycle
from jobs.claims import Claim, Ended
from jobs.lifecycle import Appetite, exchange
from jobs.models import Job, JobEvent
from jobs.outcomes import Cancelled, Failed, Outcome, Released, Succeeded
from jobs.queries import DjangoSession, WorkerSession
from jobs.states import FINAL, TRANSITIONS, Status
from scheduling import Backoff
from tests.support import handler, history_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def session():
    """A worker's connection."""
    session = WorkerSession()
    yield session
    session.close()


@pytest.fixture(autouse=True)
def kind():
    """A type to make jobs of."""
    with handler(lambda: None, name="thing", max_attempts=2) as task:
        yield task


def claim_one(session: WorkerSession, worker: uuid.UUID) -> Claim:
    """Claim the one job there is."""
    (claim,) = exchange(session, Appetite(worker), [], 1).claimed.claims
    return claim


def end(session: WorkerSession, worker: uuid.UUID, claim: Claim, outcome: Outcome):
    """Record how a claim ended."""
    return exchange(session, Appetite(worker), [Ended(claim, outcome, 0.25)], 0).recorded


def test_success_completes_the_job_and_keeps_its_result(session):
    """A success is final, with result, end time and one event that holds the duration."""
    job, worker = enqueue("thing"), uuid.uuid4()
    end(session, worker, claim_one(session, worker), Succeeded('{"answer": 42}'))
    job.refresh_from_db()
    assert (job.status, job.result, job.worker_id, job.attempt) == ("completed", {"answer": 42}, None, 1)
    assert job.finished_at >= job.started_at
    event = JobEvent.objects.get(job=job)
    assert (event.kind, event.attempt, event.worker_id, event.duration) == ("completed", 1, worker, 0.25)


def test_failure_goes_back_with_backoff_and_then_to_the_dead_letters(session):
    """A failed attempt waits for its backoff; the last one is a dead letter; each error stays in the history."""
    job, worker = enqueue("thing"), uuid.uuid4()
    end(session, worker, claim_one(session, worker), Failed("first", "trace one"))
    job.refresh_from_db()
    waits = (job.run_at - job.started_at).total_seconds()
    assert (job.status, job.last_error) == ("pending", "first")
    assert 0.5 <= waits <= 1.6
    Job.objects.update(run_at=job.created_at)
    end(session, worker, claim_one(session, worker), Failed("second", "trace two"))
    job.refresh_from_db()
    assert (job.status, job.last_error, job.attempts_used) == ("failed", "second", 2)
    events = list(JobEvent.objects.filter(job=job).order_by("id").values_list("kind", "error", "traceback"))
    assert events == [("failed", "first", "trace one"), ("dead", "second", "trace two")]


def test_hand_back_spends_no_attempt_and_keeps_the_place_in_the_queue(session):
    """A released job is as old as before and has all its attempts, but a new fencing token."""
    job, worker = enqueue("thing"), uuid.uuid4()
    for _ in range(5):
        end(session, worker, claim_one(session, worker), Released("shutdown"))
    stored = Job.objects.get(pk=job.pk)
    assert (stored.status, stored.attempt, stored.attempts_used, stored.run_at) == ("pending", 5, 0, job.run_at)


def test_a_cancelled_run_is_cancelled_for_good(session):
    """A handler that stopped because it was asked to ends its job as cancelled."""
    job, worker = enqueue("thing"), uuid.uuid4()
    claim = claim_one(session, worker)
    assert lifecycle.cancel([job.pk], actor="user:ada").changed == {job.pk: "processing"}
    end(session, worker, claim, Cancelled("stopped"))
    job.refresh_from_db()
    assert job.status == "cancelled"
    assert history_of(job.pk) == ["cancel_requested", "cancelled"]


@pytest.mark.parametrize("outcome", [Failed("boom"), Released("shutdown")])
def test_asked_to_stop_it_is_never_given_another_attempt(session, outcome):
    """What would have gone back to pending is cancelled once somebody asked for that."""
    job, worker = enqueue("thing"), uuid.uuid4()
    claim = claim_one(session, worker)
    lifecycle.cancel([job.pk], actor="user:ada")
    recorded = end(session, worker, claim, outcome)
    job.refresh_from_db()
    assert job.status == "cancelled"
    assert [(change.status, change.kind) for change in recorded.changes] == [("cancelled", "cancelled")]


@pytest.mark.parametrize("outcome", [Succeeded('"late"'), Failed("late"), Cancelled("late"), Released("late")])
@pytest.mark.parametrize("theft", ["another attempt", "another worker", "final already", "pending again"])
def test_whoever_lost_the_claim_writes_nothing(session, outcome, theft):
    """A late outcome changes neither row nor history, and is reported as lost."""
    job, worker = enqueue("thing"), uuid.uuid4()
    claim = claim_one(session, worker)
    changes = {
        "another attempt": {"attempt": 2},
        "another worker": {"worker_id": uuid.uuid4()},
        "final already": {"status": "completed", "worker_id": None, "finished_at": job.created_at},
        "pending again": {"status": "pending", "worker_id": None},
    }[theft]
    Job.objects.filter(pk=job.pk).update(**changes)
    before = Job.objects.filter(pk=job.pk).values().get()
    recorded = end(session, worker, claim, outcome)
    assert [lost.claim.id for lost in recorded.lost] == [job.pk]
    assert recorded.changes == []
    assert Job.objects.filter(pk=job.pk).values().get() == before
    assert history_of(job.pk) == []


def test_old_and_new_attempt_of_one_job_in_one_batch_do_not_hide_each_other(session):
    """The stale outcome is lost and the valid one is written, in whichever order they come."""
    for stale_first in (True, False):
        job, worker = enqueue("thing"), uuid.uuid4()
        old = claim_one(session, worker)
        end(session, worker, old, Released("handed back"))
        new = claim_one(session, worker)
        ended = [Ended(old, Failed("stale")), Ended(new, Succeeded("1"))]
        recorded = exchange(session, Appetite(worker), ended if stale_first else ended[::-1], 0).recorded
        assert [lost.claim.attempt for lost in recorded.lost] == [1]
        assert Job.objects.get(pk=job.pk).status == "completed"


@pytest.mark.parametrize("attempt", [16, 64, 999, 1_100, 100_000])
@pytest.mark.parametrize("backoff", [Backoff(1, 2, 60), Backoff(1, 5, 3600), Backoff(1e6, 1e9, 1e300)], ids=str)
def test_the_delay_after_many_attempts_stays_within_the_calendar(session, attempt, backoff):
    """However high the attempt and the policy, the job waits for a date within the cap and is not lost."""
    with handler(lambda: None, name="patient", max_attempts=1000, backoff=backoff):
        job, worker = enqueue("patient"), uuid.uuid4()
        Job.objects.filter(pk=job.pk).update(attempt=attempt - 1, attempts_refunded=max(0, attempt - 500))
        end(session, worker, claim_one(session, worker), Failed("again"))
    stored = Job.objects.get(pk=job.pk)
    assert stored.status == "pending"
    wait = (stored.run_at - stored.started_at).total_seconds()
    assert 0 < wait <= min(backoff.cap, 10 * 366 * 86400) + 5


def test_one_unstorable_outcome_does_not_hold_up_its_batch(session):
    """What PostgreSQL refuses is recorded as a failure of its own job, the neighbours as they ended."""
    jobs, worker = [enqueue("thing") for _ in range(3)], uuid.uuid4()
    claims = {claim.id: claim for claim in exchange(session, Appetite(worker), [], 3).claimed.claims}
    results = ['"fine"', "{not json", '"fine too"']
    ended = [Ended(claims[job.pk], Succeeded(result)) for job, result in zip(jobs, results, strict=True)]
    exchange(session, Appetite(worker), ended, 0)
    stored = [Job.objects.get(pk=job.pk) for job in jobs]
    assert [job.status for job in stored] == ["completed", "pending", "completed"]
    assert stored[1].last_error.startswith("The outcome of this run could not be stored: invalid input syntax")


@pytest.mark.parametrize("refused_first", [True, False])
def test_a_batch_that_is_refused_tells_of_what_went_back_to_the_queue(session, refused_first):
    """Recorded one by one, its outcomes say together whether there is something to claim, and whom to tell."""
    refused, back, worker = enqueue("thing", max_attempts=1), enqueue("thing"), uuid.uuid4()
    enqueue("thing", depends_on=[refused.pk])
    claims = {claim.id: claim for claim in exchange(session, Appetite(worker), [], 2).claimed.claims}
    ended = [Ended(claims[refused.pk], Succeeded("{not json")), Ended(claims[back.pk], Released("shutdown"))]
    recorded = exchange(session, Appetite(worker), ended if refused_first else ended[::-1], 0).recorded
    assert [Job.objects.get(pk=job.pk).status for job in (refused, back)] == ["failed", "pending"]
    assert (recorded.has_pending, recorded.has_unsettled) == (True, True)


def test_texts_that_postgresql_cannot_store_land_all_the_same(session):
    """NUL and lone surrogates in an error are replaced, and an endless one is cut with a mark."""
    job, worker = enqueue("thing"), uuid.uuid4()
    end(session, worker, claim_one(session, worker), Failed("a\x00b\ud800c", "x" * 1_000_000))
    event = JobEvent.objects.get(job=job)
    assert event.error == "a\ufffdb\ufffdc"
    assert len(event.traceback) < 21_000
    assert "characters cut" in event.traceback


def test_every_change_of_status_is_in_the_table():
    """A walk through the real life of jobs takes only ways that `states.TRANSITIONS` knows."""
    session, worker, seen = DjangoSession(), uuid.uuid4(), set()

    def step(action, job):
        before = Job.objects.get(pk=job.pk).status
        action()
        after = Job.objects.get(pk=job.pk).status
        if before != after:
            seen.add((before, after))

    def run(job, outcome):
        claims = []
        step(lambda: claims.extend(exchange(session, Appetite(worker), [], 1).claimed.claims), job)
        step(lambda: exchange(session, Appetite(worker), [Ended(claims[0], outcome)], 0), job)

    for outcomes in ([Succeeded()], [Released("x"), Cancelled("x")], [Failed("x"), Failed("x")]):
        job = enqueue("thing")
        for outcome in outcomes:
            Job.objects.filter(pk=job.pk).update(run_at=job.created_at)
            run(job, outcome)
        step(lambda job=job: lifecycle.retry([job.pk], actor="t"), job)
        step(lambda job=job: lifecycle.cancel([job.pk], actor="t"), job)
        step(lambda job=job: lifecycle.retry([job.pk], actor="t"), job)
        step(lambda job=job: lifecycle.cancel([job.pk], actor="t"), job)
    assert seen == {(str(a), str(b)) for a, targets in TRANSITIONS.items() for b in targets}
    assert all(Status(a) not in FINAL or b == "pending" for a, b in seen)
