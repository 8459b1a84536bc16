"""The routes under `/api/v1`."""

import uuid
from collections.abc import Sequence
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from ninja import NinjaAPI, Query, Status

from jobs import benchmarking, insights, lifecycle
from jobs.api.envelope import Envelope, envelope, enveloped, install_error_answers
from jobs.api.keys import ApiKey
from jobs.api.schemas import (
    BenchmarkIn,
    BenchmarkOut,
    EventOut,
    JobOut,
    JobsQuery,
    NewJobIn,
    SpooledJobOut,
    WholeJobOut,
)
from jobs.enqueueing import enqueue
from jobs.errors import TransitionRefused
from jobs.models import Job, JobEvent

api = NinjaAPI(
    title="Dilamme",
    version="1",
    description="Make background jobs, follow them, act on them. Every answer is `{message, data, errors, meta}`.",
    auth=ApiKey(),
    urls_namespace="dilamme_api",
)
install_error_answers(api)

_SPOOLED = "The database is away. The job is kept safe here, and made as soon as it is back."
_ERRORS = dict.fromkeys((400, 401, 404, 409, 413, 422, 503), Envelope[None])


@api.post("/jobs", response={201: Envelope[WholeJobOut], 202: Envelope[SpooledJobOut], **_ERRORS}, tags=["jobs"])
def create_job(request: HttpRequest, new: NewJobIn) -> Status[dict[str, Any]]:  # noqa: ARG001  ninja's signature
    """Make a job. 202 says that it was accepted and will be made: the database is away, and the spool is on."""
    job = enqueue(
        new.type,
        new.payload,
        queue=new.queue,
        priority=new.priority,
        run_at=new.scheduled_at,
        max_attempts=new.max_attempts,
        depends_on=tuple(new.dependency_ids),
        on_failure=new.on_failure,
    )
    if job.is_spooled:
        return Status(202, envelope(_SPOOLED, SpooledJobOut.of(job)))
    return Status(201, envelope("The job was made.", _whole(job, sorted(set(new.dependency_ids)), events=())))


@api.get("/jobs", response={200: Envelope[list[JobOut]], **_ERRORS}, tags=["jobs"])
def list_jobs(request: HttpRequest, query: Query[JobsQuery]) -> dict[str, Any]:  # noqa: ARG001  ninja's signature
    """List jobs, newest first. `meta.next_before` leads to the next page."""
    page = insights.page_of_jobs(
        status=query.status, type=query.type, queue=query.queue, before=query.before, limit=query.limit
    )
    jobs = [JobOut.of(job) for job in page.jobs]
    return envelope(f"{len(jobs)} jobs.", jobs, limit=query.limit, next_before=page.next_before)


@api.get("/jobs/{job_id}", response={200: Envelope[WholeJobOut], **_ERRORS}, tags=["jobs"])
def get_job(request: HttpRequest, job_id: uuid.UUID) -> dict[str, Any]:  # noqa: ARG001  ninja's signature
    """Return a job with its payload, its result and its history."""
    return envelope("The job.", _with_history(insights.get_job(job_id)))


@api.post("/jobs/{job_id}/cancel", response={200: Envelope[WholeJobOut], **_ERRORS}, tags=["jobs"])
def cancel_job(request: HttpRequest, job_id: uuid.UUID) -> dict[str, Any]:
    """Cancel a pending job, or ask a running one to stop. 409 when it is too late."""
    answer = lifecycle.cancel([job_id], actor=_actor(request))
    return envelope("Cancelled, or asked to stop.", _changed(job_id, answer))


@api.post("/jobs/{job_id}/retry", response={200: Envelope[WholeJobOut], **_ERRORS}, tags=["jobs"])
def retry_job(request: HttpRequest, job_id: uuid.UUID) -> dict[str, Any]:
    """Give a failed or cancelled job a new budget of attempts. 409 for any other."""
    answer = lifecycle.retry([job_id], actor=_actor(request))
    return envelope("The job will run again.", _changed(job_id, answer))


@api.post("/benchmark/run", response={200: Envelope[BenchmarkOut], **_ERRORS}, tags=["benchmark"])
async def run_benchmark(request: HttpRequest, wanted: BenchmarkIn) -> dict[str, Any]:  # noqa: ARG001  ninja's signature
    """Measure the heap against the timing wheel, in a process of its own. 409 while another measurement runs."""
    found = await benchmarking.run(wanted.n, wanted.algorithm)
    return envelope(f"Measured on {found.n:,} entries, medians of {found.runs} runs.", BenchmarkOut.of(found))


@enveloped(api)
def not_found(request: HttpRequest) -> HttpResponse:  # noqa: ARG001  Django's signature
    """Answer an address that is no route."""
    raise Http404


def urls() -> tuple[list[Any], str, str]:
    """Return the routes for `path("api/v1/", ...)`, every answer of theirs in the envelope."""
    patterns, app_name, namespace = api.urls
    for pattern in patterns:
        pattern.callback = enveloped(api)(pattern.callback)  # type: ignore[arg-type]  # always a view here
    return patterns, app_name, namespace


def _with_history(job: Job) -> dict[str, Any]:
    return _whole(job, insights.parents_of(job.pk), insights.events_of(job.pk))


def _whole(job: Job, parents: Sequence[uuid.UUID], events: Sequence[JobEvent]) -> dict[str, Any]:
    return JobOut.of(job) | {
        "payload": job.payload,
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


def _actor(request: HttpRequest) -> str:
    return f"api:{request.auth}"  # type: ignore[attr-defined]  # set by ninja
