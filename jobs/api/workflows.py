"""The routes for workflows: making a whole graph of jobs, seeing how it stands, and acting on all of it."""

import functools
import uuid
from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Status

from jobs import insights, lifecycle
from jobs.api.envelope import ERRORS, Envelope, Problem, envelope
from jobs.api.keys import actor_of
from jobs.api.repeating import IdempotencyKey, answered_once
from jobs.api.schemas import MadeWorkflowOut, NewWorkflowIn, StepOut, WorkflowOut, WorkflowQuery, WorkflowStateOut
from jobs.workflows import make_workflow

router = Router(tags=["workflows"])

_MADE = Envelope[MadeWorkflowOut]
_REASONS = 20  # jobs that are told of when they were not changed


@router.post("/workflows", response={201: _MADE, **ERRORS})
def create_workflow(
    request: HttpRequest, new: NewWorkflowIn, idempotency_key: IdempotencyKey = None
) -> Status[dict[str, Any]] | HttpResponse:
    """Make all jobs of a graph, or none. `data.jobs` has their ids by their names."""
    return answered_once(request, idempotency_key, _MADE, functools.partial(_create, new))


def _create(new: NewWorkflowIn) -> Status[dict[str, Any]]:
    made = make_workflow({name: step.to_step() for name, step in new.jobs.items()})
    data = {"id": made.id, "jobs": {name: job.pk for name, job in made.jobs.items()}}
    return Status(201, envelope("The workflow was made.", data))


@router.get("/workflows/{workflow_id}", response={200: Envelope[WorkflowOut], **ERRORS})
def get_workflow(
    request: HttpRequest,  # noqa: ARG001  ninja's signature
    workflow_id: uuid.UUID,
    query: Query[WorkflowQuery],
) -> dict[str, Any]:
    """Return how many jobs have each status, and a page of the jobs, parents first.

    `meta.next_after` leads to the next page.
    """
    state = _state(workflow_id)
    page = insights.page_of_workflow(workflow_id, after=query.after, limit=query.limit)
    jobs = [StepOut.of(job) | {"dependency_ids": page.parents.get(job.pk, [])} for job in page.jobs]
    return envelope("The workflow.", state | {"jobs": jobs}, limit=query.limit, next_after=page.next_after)


@router.post("/workflows/{workflow_id}/cancel", response={200: Envelope[WorkflowStateOut], **ERRORS})
def cancel_workflow(request: HttpRequest, workflow_id: uuid.UUID) -> dict[str, Any]:
    """Cancel all jobs that have not ended, and ask running ones to stop.

    `meta` says how many jobs were changed, how many were cancelled with them, and how many could not be changed.
    """
    insights.get_workflow(workflow_id)
    answer = lifecycle.cancel_workflow(workflow_id, actor=actor_of(request))
    return _acted("Cancelled, or asked to stop", workflow_id, answer)


@router.post("/workflows/{workflow_id}/retry", response={200: Envelope[WorkflowStateOut], **ERRORS})
def retry_workflow(request: HttpRequest, workflow_id: uuid.UUID, downstream: bool = True) -> dict[str, Any]:
    """Give all jobs that failed a new budget of attempts.

    With `downstream` what was cancelled because of them waits again. `meta` says how many jobs were changed, how many
    wait again with them, and how many could not be changed.
    """
    insights.get_workflow(workflow_id)
    answer = lifecycle.retry_workflow(workflow_id, actor=actor_of(request), downstream=downstream)
    return _acted("Will run again", workflow_id, answer)


def _state(workflow_id: uuid.UUID) -> dict[str, Any]:
    counts = insights.get_workflow(workflow_id)
    return {"id": workflow_id, "total": sum(counts.values()), "counts": counts}


def _acted(done: str, workflow_id: uuid.UUID, answer: lifecycle.Answer) -> dict[str, Any]:
    """Return how the workflow stands now, what was done to it, and for some of the others why it was not."""
    reasons = [Problem(field=str(id_), message=reason) for id_, reason in list(answer.refused.items())[:_REASONS]]
    return envelope(
        f"{done}: {len(answer.changed):,} {'job' if len(answer.changed) == 1 else 'jobs'}.",
        _state(workflow_id),
        errors=reasons,
        changed=len(answer.changed),
        also=len(answer.also),
        refused=len(answer.refused),
    )
