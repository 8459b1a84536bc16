"""What the page of one job shows beside its fields: its workflow, what happened to it, and who waits for whom.

All of it is bounded, whatever a job has been through. It reads and never writes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db.models import F, Func, QuerySet, TextField
from django.db.models.functions import Left

from jobs import insights
from jobs.admin import presentation
from jobs.models import Job, JobDependency, JobEvent
from jobs.states import EventKind, Status

SHOWN = 100  # events, parents and children on one page
_NO_ERRORS = {EventKind.LOGGED, EventKind.EDITED, EventKind.SNOOZED}
TEXT_LIMIT = 100_000  # characters of payload, of metadata and of result on one page


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A job at the other end of an edge."""

    job: Job
    edge: JobDependency

    @property
    def badge(self) -> str:
        """Its status."""
        return presentation.badge(self.job.pk, self.job.status)


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The jobs on one side: the first of them, and how many there are."""

    title: str
    shown: Sequence[Neighbour]
    total: int


@dataclass(frozen=True, slots=True)
class Share:
    """The jobs of a workflow that have one status: how many, and where they are listed."""

    badge: str
    count: int
    address: str


@dataclass(frozen=True, slots=True)
class Workflow:
    """The workflow that a job belongs to, by status."""

    total: int
    shares: Sequence[Share]


@dataclass(frozen=True, slots=True)
class Happening:
    """A row of history, ready to be shown."""

    event: JobEvent

    @property
    def at(self) -> str:
        """When it happened."""
        return presentation.moment(self.event.at)

    @property
    def is_error(self) -> bool:
        """Whether its text tells of something that went wrong, and not of what was said or done."""
        return self.event.kind not in _NO_ERRORS

    @property
    def took(self) -> str:
        """How long the handler ran."""
        return presentation.seconds(self.event.duration)


def with_texts(jobs: QuerySet[Job]) -> QuerySet[Job]:
    """Add payload, metadata and result as indented text, cut at `TEXT_LIMIT`.

    PostgreSQL writes it: what Python cannot parse, such as very deep nesting, must not keep an operator from the page.
    """
    return jobs.annotate(**{f"{column}_text": _pretty(column) for column in ("payload", "metadata", "result")})


def _pretty(column: str) -> Left:
    return Left(Func(F(column), function="jsonb_pretty", output_field=TextField()), TEXT_LIMIT)


def history_of(job: Job) -> list[Happening]:
    """Return the latest events of a job, newest first."""
    return [Happening(event) for event in insights.latest_events_of(job.pk, SHOWN)]


def workflow_of(counts: Mapping[str, int], address: str) -> Workflow | None:
    """Return a workflow from the numbers of its jobs and the address of their list; None if there is none."""
    shares = [
        Share(presentation.tag(str(Status(status).label), status), count, f"{address}&status={status}")
        for status, count in counts.items()
        if count
    ]
    return Workflow(sum(counts.values()), shares) if shares else None


def neighbours_of(job: Job) -> list[Neighbours]:
    """Return the parents and the children of a job, without the sides where there are none."""
    parents, children = insights.parent_edges_of(job.pk, SHOWN), insights.child_edges_of(job.pk, SHOWN)
    sides = [
        Neighbours("Parents", [Neighbour(edge.parent, edge) for edge in parents.shown], parents.total),
        Neighbours("Children", [Neighbour(edge.child, edge) for edge in children.shown], children.total),
    ]
    return [side for side in sides if side.total]
