"""The routes for jobs: making one, finding them, and acting on one."""

import functools
import uuid
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Status

from jobs import insights, lifecycle
from jobs.api.envelope import ERRORS, Envelope, envelope
from jobs.api.keys import actor_of
from jobs.api.repeating import IdempotencyKey, answered_once
from jobs.api.schemas import (
    EventOut,
    ExplanationOut,
    JobChangesIn,
    JobOut,
    JobsQuery,
    MadeJobOut,
    NewJobIn,
    SpooledJobOut,
    WholeJobOut,
)
from jobs.enqueueing import enqueue
from jobs.errors import TransitionRefused
from jobs.explaining import explain
from jobs.models import Job, JobEvent
from jobs.series import enqueue_again_and_again

router = Router(tags=["jobs"])

_SPOOLED = "The database is away. The job is kept safe here, and made as soon as it is back."
_MADE = Envelope[MadeJobOut]


@router.post("/jobs", response={200: _MADE, 201: _MADE, 202: Envelope[SpooledJobOut], **ERRORS})
def create_job(
    request: HttpRequest, new: NewJobIn, idempotency_key: IdempotencyKey = None
) -> Status[dict[str, Any]] | HttpResponse:
    """Make a job. 200 shows the one that holds its unique key; with `on_conflict` raise that is 409.

    202 says that it was accepted and will be made: the database is away, and the spool is on.
    """
    return answered_once(request, idempotency_key, _MADE, functools.partial(_create, new))


def _create(new: NewJobIn) -> Status[dict[str, Any]]:
    if new.interval is not None:
        job, series = enqueue_again_and_again(new.type, new.payload, new.interval, **new.options())
        whole = _whole(job, sorted(set(new.dependency_ids)), events=())
        return Status(201, envelope("The job was made.", whole | {"created": True}, series=series.name))
    job = enqueue(new.type, new.payload, **new.options())
    if job.is_spooled:
        return Status(202, envelope(_SPOOLED, SpooledJobOut.of(job)))
    if not job.created:
        return Status(200, envelope("This job holds the unique key.", _with_history(job) | {"created": False}))
    whole = _whole(job, sorted(set(new.dependency_ids)), events=())
    return Status(201, envelope("The job was made.", whole | {"created": True}))


@router.get("/jobs", response={200: Envelope[list[JobOut]], **ERRORS})
def list_jobs(request: HttpRequest, query: Query[JobsQuery]) -> dict[str, Any]:  # noqa: ARG001  ninja's signature
    """List jobs, newest first. `meta.next_before` leads to the next page."""
    page = insights.page_of_jobs(
        status=query.status, type=query.type, queue=query.queue, workflow_id=query.workflow_id,
        before=query.before, limit=query.limit,
    )  # fmt: skip
    jobs = [JobOut.of(job) for job in page.jobs]
    return envelope(f"{len(jobs)} jobs.", jobs, limit=query.limit, next_before=page.next_before)


@router.get("/jobs/{job_id}", response={200: Envelope[WholeJobOut], **ERRORS})
def get_job(request: HttpRequest, job_id: uuid.UUID) -> dict[str, Any]:  # noqa: ARG001  ninja's signature
    """Return a job with its payload, its metadata, its result and its history."""
    return envelope("The job.", _with_history(insights.get_job(job_id)))


@router.patch("/jobs/{job_id}", response={200: Envelope[WholeJobOut], **ERRORS})
def edit_job(request: HttpRequest, job_id: uuid.UUID, changes: JobChangesIn) -> dict[str, Any]:
    """Change a pending job. 409 once it was claimed."""
    lifecycle.edit(
        job_id, actor=actor_of(request), payload=changes.payload, queue=changes.queue, priority=changes.priority,
        run_at=changes.scheduled_at,
    )  # fmt: skip
    return envelope("The job was changed.", _with_history(insights.get_job(job_id)))


@router.get("/jobs/{job_id}/explain", response={200: Envelope[ExplanationOut], **ERRORS})
def explain_job(request: HttpRequest, job_id: uuid.UUID) -> dict[str, Any]:  # noqa: ARG001  ninja's signature
    """Say why a job is not running."""
    return envelope("What holds now.", asdict(explain(job_id)))


@router.post("/jobs/{job_id}/cancel", response={200: Envelope[WholeJobOut], **ERRORS})
def cancel_job(request: HttpRequest, job_id: uuid.UUID) -> dict[str, Any]:
    """Cancel a pending job, or ask a running one to stop. 409 when it is too late.

    `meta.also` says how many jobs were cancelled with it, because they waited for it.
    """
    answer = lifecycle.cancel([job_id], actor=actor_of(request))
    return envelope("Cancelled, or asked to stop.", _changed(job_id, answer), also=len(answer.also))


@router.post("/jobs/{job_id}/retry", response={200: Envelope[WholeJobOut], **ERRORS})
def retry_job(request: HttpRequest, job_id: uuid.UUID, downstream: bool = True) -> dict[str, Any]:
    """Give a failed or cancelled job a new budget of attempts. 409 for any other.

    With `downstream` what was cancelled because of it waits again; `meta.also` says how many jobs do.
    """
    answer = lifecycle.retry([job_id], actor=actor_of(request), downstream=downstream)
    return envelope("The job will run again.", _changed(job_id, answer), also=len(answer.also))


def _with_history(job: Job) -> dict[str, Any]:
    return _whole(job, insights.parents_of(job.pk), insights.events_of(job.pk))


def _whole(job: Job, parents: Sequence[uuid.UUID], events: Sequence[JobEvent]) -> dict[str, Any]:
    return JobOut.of(job) | {
        "payload": job.payload,
        "metadata": job.metadata,
        "result": job.result,
        "dependency_ids": parents,
        "events": [EventOut.of(event) for event in events],
    }


def _changed(job_id: uuid.UUID, answer: lifecycle.Answer) -> dict[str, Any]:
    """Return the job as it is now, or say why it was not changed."""
    job = insights.get_job(job_id)
    if reason := answer.refused.get(job_id):
        raise TransitionRefused(reason)
    return _with_history(job)
