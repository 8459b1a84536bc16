"""What goes in and comes out over REST. Bounds stand in the schema, so that the documentation shows them."""

import uuid
from datetime import datetime
from typing import Annotated, Any

from ninja import Schema
from pydantic import AwareDatetime, ConfigDict, Field

from jobs.drafts import Options
from jobs.limits import (
    ATTEMPTS_LIMIT,
    DEPENDENCY_LIMIT,
    EARLIEST,
    HIGH,
    KEY_LIMIT,
    LATEST,
    LOW,
    METADATA_LIMIT,
    NAME,
    NAME_LIMIT,
    TIMEOUT_LIMIT,
    WORKFLOW_LIMIT,
)
from jobs.models import Job, JobEvent
from jobs.states import EventKind, OnConflict, OnFailure, Phase, Status, UniqueScope
from jobs.workflows import Step

Name = Annotated[str, Field(min_length=1, max_length=NAME_LIMIT, pattern=f"^{NAME.pattern}$")]


Time = Annotated[AwareDatetime, Field(ge=EARLIEST, le=LATEST)]


class WorkIn(Schema):
    """What is to be done, and how."""

    model_config = ConfigDict(extra="forbid")

    type: Name = Field(description="The registered name of the handler.")
    payload: dict[str, Any] = Field(default_factory=dict, description="The handler's arguments.")
    queue: Name | None = Field(default=None, description="Falls back to that of the type.")
    priority: float | None = Field(default=None, ge=HIGH, le=LOW, allow_inf_nan=False, description="1 High to 3 Low.")
    scheduled_at: Time | None = Field(default=None, description="Not before this time; with a zone. Now if left out.")
    expires_at: Time | None = Field(default=None, description="Not started by then, it is cancelled; with a zone.")
    dependency_ids: list[uuid.UUID] = Field(default_factory=list, max_length=DEPENDENCY_LIMIT)
    on_failure: OnFailure = Field(default=OnFailure.CANCEL, description="What a parent's failure does to this job.")
    max_attempts: int | None = Field(default=None, ge=1, le=ATTEMPTS_LIMIT)
    timeout: float | None = Field(
        default=None,
        gt=0,
        le=TIMEOUT_LIMIT,
        allow_inf_nan=False,
        description="Seconds a run may take; falls back to that of the type.",
    )

    concurrency_key: str | None = Field(
        default=None, min_length=1, max_length=KEY_LIMIT, description="Limited together in its queue."
    )
    metadata: dict[str, Any] | None = Field(
        default=None, description=f"No argument, but what goes along with the job: at most {METADATA_LIMIT:,} bytes."
    )

    def options(self) -> dict[str, Any]:
        """Return the options of the job, by the names that they have in Python."""
        same = ("queue", "priority", "expires_at", "on_failure", "max_attempts", "timeout", "concurrency_key",
                "metadata")  # fmt: skip
        return {name: getattr(self, name) for name in same} | {
            "run_at": self.scheduled_at,
            "depends_on": tuple(self.dependency_ids),
        }


class NewJobIn(WorkIn):
    """A job to be made."""

    unique_key: str | None = Field(
        default=None, min_length=1, max_length=KEY_LIMIT, description="At most one job has a key at a time."
    )
    unique: list[str] = Field(
        default_factory=list,
        max_length=100,
        description="Instead of unique_key: names of the payload whose values, with the type, make the key.",
    )
    unique_scope: UniqueScope = Field(default=UniqueScope.UNFINISHED, description="How long the job holds its key.")
    on_conflict: OnConflict = Field(
        default=OnConflict.RETURN,
        description="When another job holds the key: show that one, replace its payload and time, or answer 409.",
    )
    workflow_id: uuid.UUID | None = Field(default=None, description="The workflow that the job joins.")
    step: Name | None = Field(default=None, description="Its name there.")
    interval: str | None = Field(
        default=None, max_length=12, description="Run again each time so long after the end: 30s 5m 2h 1d 1w 1mo 1y."
    )

    def options(self) -> dict[str, Any]:
        """Return the options of the job, by the names that they have in Python."""
        same = ("unique_key", "unique", "unique_scope", "on_conflict")
        own = {name: getattr(self, name) for name in same}
        return super().options() | own | {"workflow": self.workflow_id, "step": self.step or ""}


class JobChangesIn(Schema):
    """What of a pending job is to be changed; what is left out stays."""

    model_config = ConfigDict(extra="forbid")

    payload: dict[str, Any] | None = None
    queue: Name | None = None
    priority: float | None = Field(default=None, ge=HIGH, le=LOW, allow_inf_nan=False)
    scheduled_at: Time | None = None


class ReasonOut(Schema):
    """One thing that holds a job back."""

    why: str = Field(description="Its kind, for programs.")
    text: str
    jobs: list[uuid.UUID] = Field(description="The jobs that it is about.")
    until: datetime | None = Field(description="When it is over by itself.")


class ExplanationOut(Schema):
    """Why a job is not running: every reason that holds now, the one that decides first."""

    job_id: uuid.UUID
    status: Status
    reasons: list[ReasonOut]


class StepIn(WorkIn):
    """A job of a workflow that is to be made."""

    after: list[str] = Field(
        default_factory=list, max_length=WORKFLOW_LIMIT, description="Names of the jobs that it waits for."
    )

    def to_step(self) -> Step:
        """Return it as `jobs.workflows` takes it."""
        return Step(self.type, self.payload, self.after, Options(**self.options()))


class NewWorkflowIn(Schema):
    """A graph of jobs to be made, by names that hold in this graph only. The service counts and checks them."""

    model_config = ConfigDict(extra="forbid")

    jobs: dict[str, StepIn] = Field(
        json_schema_extra={
            "minProperties": 1,
            "maxProperties": WORKFLOW_LIMIT,
            "propertyNames": {"pattern": f"^{NAME.pattern}$", "maxLength": NAME_LIMIT},
        }
    )


class JobsQuery(Schema):
    """Which jobs to list."""

    status: Status | None = None
    type: Name | None = None
    queue: Name | None = None
    workflow_id: uuid.UUID | None = None
    before: uuid.UUID | None = Field(default=None, description="Only older jobs than this: meta.next_before of a page.")
    limit: int = Field(default=50, ge=1, le=200)


class WorkflowQuery(Schema):
    """Which jobs of a workflow to show."""

    after: uuid.UUID | None = Field(default=None, description="Only jobs beyond this: meta.next_after of a page.")
    limit: int = Field(default=50, ge=1, le=200)


class JobOut(Schema):
    """Where a job stands."""

    id: uuid.UUID
    type: str
    queue: str
    status: Status
    phase: Phase
    priority: float
    scheduled_at: datetime
    run_at: datetime
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    attempt: int
    attempts_used: int
    max_attempts: int
    unmet_dependencies: int
    last_error: str
    cancel_requested: bool
    cancelled_because: uuid.UUID | None = Field(description="The job whose end cancelled this one.")
    expires_at: datetime | None
    timeout: float | None
    unique_key: str | None
    workflow_id: uuid.UUID | None
    step: str = Field(description="Its name in its workflow.")
    concurrency_key: str | None
    series_id: int | None = Field(description="The series that made it.")
    progress: Any = Field(description="What its handler said last: done, total, message.")

    @classmethod
    def of(cls, job: Job) -> dict[str, Any]:
        """Return a job as plain values."""
        same = ("id", "type", "queue", "status", "priority", "scheduled_at", "run_at", "created_at", "started_at",
                "finished_at", "attempt", "attempts_used", "max_attempts", "last_error", "cancelled_because",
                "expires_at", "timeout", "unique_key", "workflow_id", "step", "concurrency_key",
                "series_id", "progress")  # fmt: skip
        return {name: getattr(job, name) for name in same} | {
            "phase": job.phase(),
            "unmet_dependencies": job.unmet,
            "cancel_requested": job.cancel_requested_at is not None,
        }


class EventOut(Schema):
    """One line of a job's history."""

    kind: EventKind
    at: datetime
    attempt: int
    worker_id: uuid.UUID | None
    started_at: datetime | None
    duration: float | None = Field(description="Seconds the handler ran.")
    actor: str
    error: str
    traceback: str

    @classmethod
    def of(cls, event: JobEvent) -> dict[str, Any]:
        """Return an event as plain values."""
        return {name: getattr(event, name) for name in cls.model_fields}


class WholeJobOut(JobOut):
    """A job with all that is known of it."""

    payload: Any
    metadata: Any = Field(description="What was attached to it; null if nothing.")
    result: Any
    dependency_ids: list[uuid.UUID]
    events: list[EventOut]


class MadeJobOut(WholeJobOut):
    """A job as it stands after a request to make it."""

    created: bool = Field(description="False if it held the unique key already, and nothing was made.")


class StepOut(JobOut):
    """A job of a workflow."""

    dependency_ids: list[uuid.UUID]


class MadeWorkflowOut(Schema):
    """A workflow that was made."""

    id: uuid.UUID
    jobs: dict[str, uuid.UUID] = Field(description="The ids of the jobs, by name.")


class WorkflowStateOut(Schema):
    """How a workflow stands."""

    id: uuid.UUID
    total: int
    counts: dict[Status, int] = Field(description="How many jobs have each status.")


class WorkflowOut(WorkflowStateOut):
    """How a workflow stands, and some of its jobs."""

    jobs: list[StepOut]


class SpooledJobOut(Schema):
    """A job that was accepted while the database was away. Its id holds once it is made."""

    id: uuid.UUID
    type: str
    queue: str
    priority: float
    scheduled_at: datetime
    max_attempts: int

    @classmethod
    def of(cls, job: Job) -> dict[str, Any]:
        """Return a job as plain values."""
        return {name: getattr(job, name) for name in cls.model_fields}
