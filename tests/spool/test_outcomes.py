"""Outcomes that a worker could not report: kept, and reported by the next, behind the fence."""

import uuid
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from jobs import enqueue, lifecycle
from jobs.claims import Claim, Ended
from jobs.lifecycle import Appetite, exchange
from jobs.models import Job
from jobs.outcomes import Cancelled, Failed, Released, Succeeded
from jobs.queries import DjangoSession
from jobs.spool.records import SpooledOutcome
from tests.support import handler, history_of
from workers import unreported
from workers.unreported import Unreported

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def kind(spool):
    """A type to make jobs of, and a spool."""
    with handler(lambda: None, name="thing", max_attempts=2) as task:
        yield task


def claimed(worker: uuid.UUID, count: int = 1) -> list[Claim]:
    """Make jobs that this worker has claimed, oldest first."""
    for _ in range(count):
        enqueue("thing")
    return sorted(exchange(DjangoSession(), Appetite(worker), [], count).claimed.claims, key=lambda claim: claim.id)


def left_behind(worker: uuid.UUID, ended: list[Ended]) -> None:
    """Have a worker keep outcomes on disk, and go."""
    outcomes = Unreported(worker)
    outcomes.add(ended)
    outcomes.secure()
    assert outcomes.are_on_disk
    outcomes.close()


def adopt() -> list[lifecycle.recording.Recorded]:
    """Report what was left behind."""
    return list(unreported.adopt(DjangoSession()))


def test_every_kind_of_outcome_is_reported(spool: Path):
    """Success with its result, failure with its traceback, cancellation and hand-back end as they would have."""
    worker = uuid.uuid4()
    a, b, c, d = claimed(worker, 4)
    left_behind(worker, [
        Ended(a, Succeeded('{"n": 1}'), 0.5), Ended(b, Failed("broken", "the traceback"), 0.1),
        Ended(c, Cancelled("enough"), 0.2), Ended(d, Released("later", 5.0)),
    ])  # fmt: skip
    (recorded,) = adopt()
    assert len(recorded.changes) == 4
    jobs = {job.pk: job for job in Job.objects.all()}
    assert (jobs[a.id].status, jobs[a.id].result) == ("completed", {"n": 1})
    assert (jobs[b.id].status, jobs[b.id].last_error) == ("pending", "broken")
    assert (jobs[c.id].status, jobs[d.id].status) == ("cancelled", "pending")
    assert jobs[d.id].attempts_used == 0
    assert list(spool.iterdir()) == []


def test_what_was_taken_back_and_run_again_is_left_alone():
    """The late word of a lost worker is refused: the new attempt's claim stands."""
    old, new = uuid.uuid4(), uuid.uuid4()
    (claim,) = claimed(old)
    left_behind(old, [Ended(claim, Succeeded('"late"'), 0.5)])
    Job.objects.update(started_at=timezone.now() - timedelta(hours=1))
    lifecycle.rescue(DjangoSession())
    Job.objects.update(run_at=timezone.now())
    exchange(DjangoSession(), Appetite(new), [], 1)
    (recorded,) = adopt()
    assert [end.claim.id for end in recorded.lost] == [claim.id]
    job = Job.objects.get()
    assert (job.status, job.worker_id, job.result) == ("processing", new, None)


def test_reported_twice_it_counts_once():
    """A crash between the report and its note on disk repeats the report, which changes nothing."""
    worker = uuid.uuid4()
    (claim,) = claimed(worker)
    for _ in range(2):
        left_behind(worker, [Ended(claim, Succeeded("1"), 0.5)])
    recorded = adopt()
    assert sum(len(each.changes) for each in recorded) == 1
    assert sum(len(each.lost) for each in recorded) == 1
    assert history_of(claim.id) == ["completed"]


def test_what_was_reported_leaves_the_disk(spool: Path):
    """The file goes with the last outcome in it."""
    worker = uuid.uuid4()
    claims = claimed(worker, 3)
    outcomes = Unreported(worker)
    outcomes.add([Ended(claim, Succeeded(), 0.1) for claim in claims])
    outcomes.secure()
    outcomes.forget(outcomes.take(2))
    assert len(list(spool.glob("outcomes-*.spool"))) == 1
    outcomes.forget(outcomes.take(1))
    assert list(spool.iterdir()) == []
    assert len(outcomes) == 0


def test_without_a_spool_nothing_is_written(settings, spool: Path):
    """Memory is all there is, and that is said."""
    settings.DILAMME = {**settings.DILAMME, "SPOOL": ""}
    outcomes = Unreported(uuid.uuid4())
    outcomes.add([Ended(claimed(uuid.uuid4())[0], Succeeded())])
    outcomes.secure()
    assert not outcomes.are_on_disk
    assert not spool.exists()
    outcomes.close()


def test_a_record_says_everything_but_the_payload():
    """It comes back as it was, whatever the outcome's texts contain."""
    claim = Claim(uuid.uuid4(), "thing", "mail", 1.5, "{}", 3, 1, 5, 10.5, 9.25, 11.125, cancel_requested=True)
    worker = uuid.uuid4()
    for outcome in (
        Succeeded(None),
        Succeeded('"ü\\u0001"'),
        Failed("ü\x00\ud800", "t", lost=True),
        Released("r", 2.5),
    ):
        spooled = SpooledOutcome.unpack(SpooledOutcome(worker, Ended(claim, outcome, None)).pack())
        assert spooled.worker_id == worker
        assert spooled.ended.outcome == outcome
        assert spooled.ended.claim == claim._replace(payload="")
