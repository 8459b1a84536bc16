"""All reads for people and programs: one job with its history, pages of jobs, workflows, and how the whole is doing.

It changes nothing. Lists leave out payloads, metadata and results, which may be large, and page by id, which needs no
count.
"""

import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, F, Q, QuerySet
from django.db.models.functions import Now

from jobs.conf import settings
from jobs.context import Parent
from jobs.errors import JobNotFound, WorkflowNotFound
from jobs.models import Job, JobDependency, JobEvent, Series, Worker
from jobs.states import Status

_LARGE = ("payload", "metadata", "result")


@dataclass(frozen=True, slots=True)
class Page:
    """Some jobs, newest first, and the id to go on from; None at the end."""

    jobs: list[Job]
    next_before: uuid.UUID | None


@dataclass(frozen=True, slots=True)
class Health:
    """Who is alive. `listening` counts the workers that notifications reach; the others poll."""

    workers: int
    listening: int


def light_jobs() -> QuerySet[Job]:
    """Return all jobs without their large columns: for lists."""
    return Job.objects.using(settings.DATABASE).defer(*_LARGE)


def get_job(job_id: uuid.UUID) -> Job:
    """Return a job, whole; `JobNotFound` if there is none."""
    try:
        return Job.objects.using(settings.DATABASE).get(pk=job_id)
    except Job.DoesNotExist:
        raise JobNotFound(f"There is no job {job_id}.") from None


def events_of(job_id: uuid.UUID) -> list[JobEvent]:
    """Return what happened to a job, oldest first."""
    return list(JobEvent.objects.using(settings.DATABASE).filter(job=job_id).order_by("id"))


def latest_events_of(job_id: uuid.UUID, limit: int) -> list[JobEvent]:
    """Return the last things that happened to a job, newest first."""
    return list(JobEvent.objects.using(settings.DATABASE).filter(job=job_id).order_by("-id")[:limit])


@dataclass(frozen=True, slots=True)
class Edges:
    """The first edges on one side of a job, each with the job at its other end, and how many there are."""

    shown: list[JobDependency]
    total: int


def parent_edges_of(job_id: uuid.UUID, limit: int) -> Edges:
    """Return the edges to the jobs that this one depends on."""
    return _edges(JobDependency.objects.filter(child=job_id), "parent", limit)


def child_edges_of(job_id: uuid.UUID, limit: int) -> Edges:
    """Return the edges to the jobs that depend on this one."""
    return _edges(JobDependency.objects.filter(parent=job_id), "child", limit)


def _edges(edges: QuerySet[JobDependency], far_end: str, limit: int) -> Edges:
    edges = edges.using(settings.DATABASE)
    light = edges.select_related(far_end).defer(*(f"{far_end}__{column}" for column in _LARGE))
    return Edges(list(light.order_by(far_end)[:limit]), edges.count())


def parents_of(job_id: uuid.UUID) -> list[uuid.UUID]:
    """Return the ids of the jobs that this one depends on."""
    edges = JobDependency.objects.using(settings.DATABASE).filter(child=job_id)
    return list(edges.order_by("parent").values_list("parent", flat=True))


def parent_results(job_id: uuid.UUID) -> dict[str, Parent]:
    """Return the jobs that this one waited for, with their results, by their name in a workflow, or by id."""
    edges = JobDependency.objects.using(settings.DATABASE).filter(child=job_id).order_by("parent")
    inside = Q(parent__workflow_id=F("child__workflow_id"))
    rows = edges.annotate(is_inside=inside).values_list(
        "parent_id", "parent__step", "is_inside", "parent__type", "parent__status", "parent__result"
    )
    found: dict[str, Parent] = {}
    for id_, step, is_inside, type_, status, result in rows:
        name = step if is_inside and step and step not in found else str(id_)
        found[name] = Parent(id_, type_, status, result)
    return found


def metadata_of(job_id: uuid.UUID) -> dict[str, Any]:
    """Return what the caller attached to a job; empty if that was nothing, or if there is no such job."""
    found = Job.objects.using(settings.DATABASE).filter(pk=job_id).values_list("metadata", flat=True).first()
    return found or {}


def page_of_jobs(*, before: uuid.UUID | None, limit: int, **equals: str | uuid.UUID | None) -> Page:
    """Return up to `limit` jobs, newest first, older than `before`, whose fields equal what is given."""
    jobs = light_jobs().filter(**{name: value for name, value in equals.items() if value is not None})
    if before is not None:
        jobs = jobs.filter(pk__lt=before)
    found = list(jobs.order_by("-pk")[: limit + 1])
    more = len(found) > limit
    return Page(found[:limit], found[limit - 1].pk if more else None)


@dataclass(frozen=True, slots=True)
class WorkflowPage:
    """Some jobs of a workflow, parents first, the ids of the parents of each, and the id to go on from."""

    jobs: list[Job]
    parents: Mapping[uuid.UUID, list[uuid.UUID]]
    next_after: uuid.UUID | None


def count_workflow(workflow_id: uuid.UUID) -> dict[str, int]:
    """Return how many jobs of a workflow have each status; all are zero if there is none."""
    jobs = Job.objects.using(settings.DATABASE).filter(workflow_id=workflow_id)
    counts = jobs.order_by().values_list("status").annotate(Count("pk"))
    return dict.fromkeys(Status.values, 0) | dict(counts)


def get_workflow(workflow_id: uuid.UUID) -> dict[str, int]:
    """Return how many jobs of a workflow have each status; `WorkflowNotFound` if there is none."""
    counts = count_workflow(workflow_id)
    if not any(counts.values()):
        raise WorkflowNotFound(f"There is no workflow {workflow_id}.")
    return counts


def series_name_of(job: Job) -> str | None:
    """Return the name of the series that made a job; None if none did, or if it has been removed."""
    if job.series_id is None:
        return None
    return Series.objects.using(settings.DATABASE).filter(pk=job.series_id).values_list("name", flat=True).first()


def workflow_of(job_id: uuid.UUID) -> uuid.UUID | None:
    """Return the workflow that a job belongs to; None if it belongs to none, or does not exist."""
    return Job.objects.using(settings.DATABASE).filter(pk=job_id).values_list("workflow_id", flat=True).first()


def page_of_workflow(workflow_id: uuid.UUID, *, after: uuid.UUID | None, limit: int) -> WorkflowPage:
    """Return up to `limit` jobs of a workflow in ascending id, which puts parents first, beyond `after`."""
    jobs = light_jobs().filter(workflow_id=workflow_id)
    if after is not None:
        jobs = jobs.filter(pk__gt=after)
    found = list(jobs.order_by("pk")[: limit + 1])
    shown, more = found[:limit], len(found) > limit
    return WorkflowPage(shown, _parents_of_each(job.pk for job in shown), shown[-1].pk if more else None)


def _parents_of_each(ids: Iterable[uuid.UUID]) -> Mapping[uuid.UUID, list[uuid.UUID]]:
    edges = JobDependency.objects.using(settings.DATABASE).filter(child__in=list(ids))
    parents: defaultdict[uuid.UUID, list[uuid.UUID]] = defaultdict(list)
    for child, parent in edges.order_by("child", "parent").values_list("child_id", "parent_id"):
        parents[child].append(parent)
    return parents


def health() -> Health:
    """Count the workers whose lease stands; raises Django's OperationalError when the database is away."""
    alive = Worker.objects.using(settings.DATABASE).filter(lease_expires_at__gt=Now())
    listening = list(alive.values_list("listening", flat=True))
    return Health(workers=len(listening), listening=sum(listening))
