"""What a handler may know and do about its own run: the `ctx` that it gets when it asks for one.

A context never touches the database: the worker that made it answers for it.
"""

import math
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol

from asgiref.sync import sync_to_async

from jobs.claims import Claim
from jobs.errors import JobCancelled


class Parent(NamedTuple):
    """A job that this one waited for."""

    id: uuid.UUID
    type: str
    status: str  # completed; or with on_failure="run" also failed or cancelled
    result: Any


class Reports(Protocol):
    """Who keeps what handlers say."""

    def progress(self, job_id: uuid.UUID, attempt: int, done: float, total: float | None, message: str) -> None:
        """Note how far an attempt is."""

    def log(self, job_id: uuid.UUID, attempt: int, text: str) -> None:
        """Note a line for the history."""


LINES_LIMIT = 1000  # of one run

ReadParents = Callable[[uuid.UUID], Mapping[str, Parent]]
ReadMetadata = Callable[[uuid.UUID], Mapping[str, Any]]


class Context:
    """Given to a handler whose first parameter is called `ctx` (or is annotated with this class)."""

    __slots__ = ("_interrupt", "_is_stopped", "_job", "_lines", "_read_metadata", "_read_parents", "_reports")

    def __init__(
        self,
        job: Claim,
        read_parents: ReadParents | None = None,
        reports: Reports | None = None,
        read_metadata: ReadMetadata | None = None,
    ) -> None:
        # One is made for every run, and most handlers do not ask for it: so nothing is copied out of the job.
        self._job = job
        self._read_parents = read_parents
        self._reports = reports
        self._read_metadata = read_metadata
        self._lines = 0
        self._interrupt: Callable[[], object] | None = None
        self._is_stopped = False  # a bare flag: nobody waits for it

    @property
    def job_id(self) -> uuid.UUID:
        """The id of the job."""
        return self._job.id

    @property
    def type(self) -> str:
        """The name of its type."""
        return self._job.type

    @property
    def queue(self) -> str:
        """The queue that it was taken from."""
        return self._job.queue

    @property
    def attempt(self) -> int:
        """How often this job has been claimed, this run included."""
        return self._job.attempt

    @property
    def workflow_id(self) -> uuid.UUID | None:
        """The graph that it is a part of; `task.using(workflow=ctx.workflow_id)` adds a job to it."""
        return self._job.workflow_id

    @property
    def scheduled_at(self) -> datetime:
        """When the job was meant to run: the slot of its series, or what the caller asked for. In UTC."""
        if self._job.scheduled_at is None:
            raise RuntimeError("This context belongs to no stored job.")
        return datetime.fromtimestamp(self._job.scheduled_at, UTC)

    @property
    def parents(self) -> Mapping[str, Parent]:
        """The jobs that this one waited for, by their name in the workflow, or by id. Asks the database."""
        return self._read_parents(self.job_id) if self._read_parents else {}

    async def aparents(self) -> Mapping[str, Parent]:
        """Return the same as `parents`, for async handlers."""
        return await sync_to_async(lambda: self.parents)()

    @property
    def metadata(self) -> Mapping[str, Any]:
        """What the caller attached to the job by `using(metadata=...)`; empty if nothing. Asks the database."""
        return self._read_metadata(self.job_id) if self._read_metadata else {}

    async def ametadata(self) -> Mapping[str, Any]:
        """Return the same as `metadata`, for async handlers."""
        return await sync_to_async(lambda: self.metadata)()

    def progress(self, done: float, total: float | None = None, message: str = "") -> None:
        """Say how far this run is; shown live and kept. Cheap: at most four a second are written, the latest counts."""
        for name, value in (("done", done), ("total", total)):
            if value is not None and not (isinstance(value, int | float) and math.isfinite(value)):
                raise ValueError(f"{name} is {value!r}; give a finite number.")
        if self._reports is not None:
            self._reports.progress(self.job_id, self.attempt, done, total, str(message))

    def log(self, message: str) -> None:
        """Put a line into the job's history; beyond 1,000 of one run they are dropped, and the last one says so."""
        self._lines += 1
        if self._reports is None or self._lines > LINES_LIMIT:
            return
        last = " (the lines that follow are dropped)" if self._lines == LINES_LIMIT else ""
        self._reports.log(self.job_id, self.attempt, f"{message}{last}")

    @property
    def cancelled(self) -> bool:
        """Whether this run is no longer wanted: cancelled by somebody, or past its timeout."""
        return self._is_stopped

    def check(self) -> None:
        """Raise `JobCancelled` once this run is no longer wanted; call it where stopping is safe."""
        if self._is_stopped:
            raise JobCancelled(f"Job {self.job_id} was asked to stop.")

    def stop(self) -> None:
        """Tell the handler to stop (called by the worker)."""
        self._is_stopped = True
        if self._interrupt is not None:
            self._interrupt()

    def interrupt_with(self, interrupt: Callable[[], object]) -> None:
        """Have this called when the handler is to stop (set by whoever runs it); at once if it is already."""
        self._interrupt = interrupt
        if self._is_stopped:
            interrupt()
