"""What goes in and comes out over REST. Bounds stand in the schema, so that the documentation shows them."""

import uuid
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, Literal

from ninja import Schema
from pydantic import AwareDatetime, ConfigDict, Field

from jobs.benchmarking import N_LIMIT
from jobs.limits import ATTEMPTS_LIMIT, DEPENDENCY_LIMIT, EARLIEST, HIGH, LATEST, LOW, NAME, NAME_LIMIT
from jobs.models import Job, JobEvent
from jobs.spool.forwarder import SpoolStatus
from jobs.states import EventKind, OnFailure, Phase, Status
from scheduling.comparison import ALGORITHMS, MEASURES, Comparison

Name = Annotated[str, Field(min_length=1, max_length=NAME_LIMIT, pattern=f"^{NAME.pattern}$")]


class NewJobIn(Schema):
    """A job to be made."""

    model_config = ConfigDict(extra="forbid")

    type: Name = Field(description="The registered name of the handler.")
    payload: dict[str, Any] = Field(default_factory=dict, description="The handler's arguments.")
    queue: Name | None = Field(default=None, description="Falls back to that of the type.")
    priority: float | None = Field(default=None, ge=HIGH, le=LOW, allow_inf_nan=False, description="1 High to 3 Low.")
    scheduled_at: AwareDatetime | None = Field(
        default=None, ge=EARLIEST, le=LATEST, description="Not before this time; with a zone. Now if left out."
    )
    dependency_ids: list[uuid.UUID] = Field(default_factory=list, max_length=DEPENDENCY_LIMIT)
    on_failure: OnFailure = Field(default=OnFailure.CANCEL, description="What a parent's failure does to this job.")
    max_attempts: int | None = Field(default=None, ge=1, le=ATTEMPTS_LIMIT)


class JobsQuery(Schema):
    """Which jobs to list."""

    status: Status | None = None
    type: Name | None = None
    queue: Name | None = None
    before: uuid.UUID | None = Field(default=None, description="Only older jobs than this: meta.next_before of a page.")
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

    @classmethod
    def of(cls, job: Job) -> dict[str, Any]:
        """Return a job as plain values."""
        same = ("id", "type", "queue", "status", "priority", "scheduled_at", "run_at", "created_at", "started_at",
                "finished_at", "attempt", "attempts_used", "max_attempts", "last_error")  # fmt: skip
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
    result: Any
    dependency_ids: list[uuid.UUID]
    events: list[EventOut]


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


class SpoolOut(Schema):
    """The spool of this web process."""

    jobs: int = Field(description="Jobs accepted and not yet in the database.")
    size: int = Field(description="Bytes they take.")
    limit: int = Field(description="Bytes they may take.")

    @classmethod
    def of(cls, status: SpoolStatus) -> "SpoolOut | None":
        """Return how it is doing, or None where there is none."""
        return cls(jobs=status.jobs, size=status.size, limit=status.limit) if status.is_on else None


class HealthOut(Schema):
    """How the whole is doing."""

    status: Literal["ok", "spooling", "database away"]
    workers: int | None = Field(default=None, description="Workers whose lease stands.")
    listening: int | None = Field(default=None, description="Those of them that notifications reach; the others poll.")
    spool: SpoolOut | None = None


class BenchmarkIn(Schema):
    """What is to be measured."""

    model_config = ConfigDict(extra="forbid")

    n: int = Field(ge=1, le=N_LIMIT, description="How many entries.")
    algorithm: Literal["heap", "wheel", "both"] = "both"


class FiguresOut(Schema):
    """What one algorithm costs; times are medians of the runs."""

    insert_ms: float = Field(description="Milliseconds to insert all entries.")
    retrieve_ms: float = Field(description="Milliseconds to take all out in order, one after the other.")
    drain_ms: float = Field(description="Milliseconds to take all out in order, at once.")
    cancel_ms: float = Field(description="Milliseconds to cancel all in random order.")
    tick_us: float = Field(description="Microseconds of a tick, or a re-scoring, at which nothing is due.")
    bytes_per_entry: float = Field(description="Memory for each entry, beyond the job itself.")


class BenchmarkOut(Schema):
    """What was measured, and how many times as much the heap costs as the wheel."""

    n: int
    runs: int
    figures: dict[str, FiguresOut]
    heap_to_wheel: dict[str, float] | None = Field(description="Below 1 the heap costs less; null unless both ran.")

    @classmethod
    def of(cls, found: Comparison) -> dict[str, Any]:
        """Return a comparison as plain values."""
        both = all(name in found.figures for name in ALGORITHMS)
        return {
            "n": found.n,
            "runs": found.runs,
            "figures": {name: asdict(figures) for name, figures in found.figures.items()},
            "heap_to_wheel": {name: found.ratio(name, *ALGORITHMS) for name in MEASURES} if both else None,
        }
