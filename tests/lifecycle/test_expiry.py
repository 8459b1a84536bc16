"""Jobs that were not started in time, and those that were."""

from datetime import timedelta

from django.utils import timezone

from jobs import enqueue, lifecycle
from jobs.models import Job
from jobs.outcomes import Failed
from tests.lifecycle.graphs import Turns
from tests.support import history_of


def let_expire(job: Job) -> None:
    """Move the time by which it has to be started into the past."""
    Job.objects.filter(pk=job.pk).update(expires_at=timezone.now() - timedelta(seconds=1))


def test_a_job_that_nobody_started_in_time_is_cancelled_with_what_waits_for_it(turns: Turns) -> None:
    """The history says why; others are left alone."""
    in_an_hour = timezone.now() + timedelta(hours=1)
    late, fine = enqueue("free", expires_at=in_an_hour), enqueue("free", expires_at=in_an_hour)
    child = enqueue("free", depends_on=[late.pk])
    let_expire(late)
    changes = lifecycle.expire(turns.session)
    assert {change.job_id for change in changes} == {late.pk, child.pk}
    assert history_of(late.pk) == ["expired"]
    assert Job.objects.get(pk=child.pk).cancelled_because == late.pk
    assert Job.objects.get(pk=fine.pk).status == "pending"


def test_a_job_that_was_started_in_time_may_be_tried_again_later(turns: Turns) -> None:
    """Only its first start had to be in time."""
    job = enqueue("free", expires_at=timezone.now() + timedelta(hours=1), max_attempts=2)
    turns.run(job, Failed("once", delay=100))
    let_expire(job)
    assert lifecycle.expire(turns.session) == []
    assert Job.objects.get(pk=job.pk).status == "pending"


def test_an_expired_job_that_is_retried_by_hand_does_not_expire_again(turns: Turns) -> None:
    """Whoever brings it back wants it to run."""
    job = enqueue("free", expires_at=timezone.now() + timedelta(hours=1))
    let_expire(job)
    lifecycle.expire(turns.session)
    lifecycle.retry([job.pk], actor="a")
    assert lifecycle.expire(turns.session) == []
    turns.run(job)
    assert Job.objects.get(pk=job.pk).status == "completed"
