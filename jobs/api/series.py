"""The routes for series: keeping them, pausing them, and running one by hand."""

import uuid
from datetime import datetime
from typing import Any, Literal

from django.http import HttpRequest
from ninja import Query, Router, Schema, Status
from pydantic import ConfigDict, Field

from jobs import series as service
from jobs.api.envelope import ERRORS, Envelope, envelope
from jobs.api.paging import NamesQuery
from jobs.api.schemas import JobOut, Name, Time
from jobs.limits import ATTEMPTS_LIMIT, HIGH, LOW
from jobs.models import Series

router = Router(tags=["series"])

_MAY_BE_NULL = {"queue", "priority", "max_attempts", "ends_at"}  # falls back to the type's, or never ends


class SeriesIn(Schema):
    """A rule and the jobs it makes; what is left out falls back to its default."""

    model_config = ConfigDict(extra="forbid")

    payload: dict[str, Any] | None = None
    queue: Name | None = None
    priority: float | None = Field(default=None, ge=HIGH, le=LOW, allow_inf_nan=False)
    max_attempts: int | None = Field(default=None, ge=1, le=ATTEMPTS_LIMIT)
    interval: str | None = Field(default=None, max_length=12, description="Such as 30s 5m 2h 1d 1w 1mo 1y.")
    cron: str | None = Field(default=None, max_length=500, description="Such as 0 9 * * 1-5. Instead of an interval.")
    zone: str | None = Field(default=None, max_length=64, description="IANA name, such as Europe/Paris.")
    mode: Literal["grid", "after"] | None = None
    catch_up: Literal["skip", "one", "all"] | None = None
    catch_up_limit: int | None = Field(default=None, ge=1, le=10_000)
    overlap: Literal["skip", "allow"] | None = None
    jitter: float | None = Field(default=None, ge=0, le=86_400, allow_inf_nan=False)
    starts_at: Time | None = None
    ends_at: Time | None = None

    def given(self) -> dict[str, Any]:
        """Return the fields that the request has; null is a value where it has a meaning."""
        return {
            name: value
            for name, value in self.dict(exclude_unset=True).items()
            if value is not None or name in _MAY_BE_NULL
        }


class NewSeriesIn(SeriesIn):
    """A series to be made."""

    name: Name
    type: Name


class SeriesOut(Schema):
    """How a series stands."""

    id: int = Field(description="What its jobs have as series_id.")
    name: str
    type: str
    payload: Any
    queue: str | None
    priority: float | None
    max_attempts: int | None
    interval: str
    cron: str
    zone: str
    mode: str
    catch_up: str
    catch_up_limit: int
    overlap: str
    jitter: float
    starts_at: datetime
    ends_at: datetime | None
    paused: bool
    declared: bool = Field(description="By the code, where it is edited.")
    fault: str = Field(description="Why it does not fire.")
    last_slot: datetime
    next_at: datetime | None = Field(description="Null while it waits for the end of a run.")
    last_job_id: uuid.UUID | None
    skipped: int = Field(description="Slots without a job, because a run was going on.")
    preview: list[datetime] = Field(description="The next slots.")

    @classmethod
    def of(cls, series: Series) -> dict[str, Any]:
        """Return a series as plain values."""
        same = {name: getattr(series, name) for name in cls.model_fields if name != "preview"}
        return same | {"preview": list(service.preview(series))}


_OUT = Envelope[SeriesOut]


@router.get("/series", response={200: Envelope[list[SeriesOut]], **ERRORS})
def list_series(request: HttpRequest, query: Query[NamesQuery]) -> dict[str, Any]:  # noqa: ARG001  ninja's signature
    """List series by name. `meta.next_after` leads to the next page."""
    found = service.page_of_series(**query.wanted)
    shown = [SeriesOut.of(each) for each in query.shown(found)]
    return envelope(f"{len(shown)} series.", shown, **query.meta([each.name for each in found]))


@router.post("/series", response={201: _OUT, **ERRORS})
def create_series(request: HttpRequest, new: NewSeriesIn) -> Status[dict[str, Any]]:  # noqa: ARG001
    """Make a series."""
    return Status(201, envelope("The series was made.", SeriesOut.of(service.make_series(**new.given()))))


@router.get("/series/{name}", response={200: _OUT, **ERRORS})
def get_series(request: HttpRequest, name: str) -> dict[str, Any]:  # noqa: ARG001
    """Return a series with its next slots."""
    return envelope("The series.", SeriesOut.of(service.get_series(name)))


@router.patch("/series/{name}", response={200: _OUT, **ERRORS})
def edit_series(request: HttpRequest, name: str, changes: SeriesIn) -> dict[str, Any]:  # noqa: ARG001
    """Change a series; takes effect at the next tick. 409 for one that the code declares."""
    edited = service.edit_series(service.get_series(name), **changes.given())
    return envelope("The series was changed.", SeriesOut.of(edited))


@router.delete("/series/{name}", response={200: Envelope[None], **ERRORS})
def delete_series(request: HttpRequest, name: str) -> dict[str, Any]:  # noqa: ARG001
    """Remove a series; the jobs that it has made stay. 409 for one that the code declares."""
    service.delete_series(service.get_series(name))
    return envelope("The series was removed.")


@router.post("/series/{name}/pause", response={200: _OUT, **ERRORS})
def pause_series(request: HttpRequest, name: str) -> dict[str, Any]:  # noqa: ARG001
    """Let it make no more jobs."""
    return envelope("Paused.", SeriesOut.of(service.pause_series(service.get_series(name))))


@router.post("/series/{name}/resume", response={200: _OUT, **ERRORS})
def resume_series(request: HttpRequest, name: str) -> dict[str, Any]:  # noqa: ARG001
    """Let it go on with its next slot."""
    return envelope("Goes on.", SeriesOut.of(service.resume_series(service.get_series(name))))


@router.post("/series/{name}/run", response={201: Envelope[JobOut], **ERRORS})
def run_series(request: HttpRequest, name: str) -> Status[dict[str, Any]]:  # noqa: ARG001
    """Make a job of it now, beside its slots."""
    return Status(201, envelope("The job was made.", JobOut.of(service.run_now(service.get_series(name)))))
