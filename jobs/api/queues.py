"""The routes for queues and types: how they stand, holding them back, and letting them go."""

from datetime import datetime
from typing import Any

from django.http import HttpRequest
from ninja import Query, Router, Schema
from pydantic import ConfigDict, Field

from jobs import queues as service
from jobs.api.envelope import ERRORS, Envelope, envelope
from jobs.api.paging import NamesQuery
from jobs.api.schemas import Time
from jobs.models import PausedType, Queue

router = Router(tags=["queues"])


class LimitsIn(Schema):
    """All limits of a queue; what is left out is not limited."""

    model_config = ConfigDict(extra="forbid")

    concurrency: int | None = Field(default=None, ge=0, le=service.LIMIT, description="Jobs at once, over all workers.")
    concurrency_per_key: int | None = Field(default=None, ge=1, le=service.LIMIT)
    rate: float | None = Field(
        default=None, gt=0, le=service.LIMIT, allow_inf_nan=False, description="Starts a second."
    )
    burst: int | None = Field(default=None, ge=1, le=service.LIMIT, description="Starts at once after a rest.")


class QueueOut(Schema):
    """How a queue is held back, and how many jobs it has."""

    name: str
    paused: bool
    paused_until: datetime | None
    concurrency: int | None
    concurrency_per_key: int | None
    rate: float | None
    burst: int | None
    pending: int = Field(description="Jobs that wait for a worker or for their time, not for other jobs.")
    processing: int

    @classmethod
    def of(cls, queue: Queue, counts: service.Counts) -> dict[str, Any]:
        """Return a queue as plain values, with its counts."""
        same = {name: getattr(queue, name) for name in cls.model_fields if name not in ("pending", "processing")}
        return same | {"pending": counts.pending, "processing": counts.processing}


class PausedTypeOut(Schema):
    """A type of which no job is started."""

    type: str
    until: datetime | None

    @classmethod
    def of(cls, paused: PausedType) -> dict[str, Any]:
        """Return it as plain values."""
        return {"type": paused.type, "until": paused.until}


_OUT = Envelope[QueueOut]


@router.get("/queues", response={200: Envelope[list[QueueOut]], **ERRORS})
def list_queues(request: HttpRequest, query: Query[NamesQuery]) -> dict[str, Any]:  # noqa: ARG001  ninja's signature
    """List by name the queues that have work, and those that are or were held back.

    `meta.next_after` leads to the next page.
    """
    found = service.page_of_queues(**query.wanted)
    shown = [QueueOut.of(*each) for each in query.shown(found)]
    return envelope(f"{len(shown)} queues.", shown, **query.meta([queue.name for queue, _ in found]))


@router.put("/queues/{name}", response={200: _OUT, **ERRORS})
def limit_queue(request: HttpRequest, name: str, limits: LimitsIn) -> dict[str, Any]:  # noqa: ARG001
    """Set all limits of a queue."""
    service.limit_queue(name, **limits.dict())
    return envelope("The limits hold from the next claim on.", QueueOut.of(*service.one_queue(name)))


@router.post("/queues/{name}/pause", response={200: _OUT, **ERRORS})
def pause_queue(request: HttpRequest, name: str, until: Time | None = None) -> dict[str, Any]:  # noqa: ARG001
    """Let no job of the queue be started. What runs is left alone."""
    service.pause_queue(name, until=until)
    return envelope("Paused.", QueueOut.of(*service.one_queue(name)))


@router.post("/queues/{name}/resume", response={200: _OUT, **ERRORS})
def resume_queue(request: HttpRequest, name: str) -> dict[str, Any]:  # noqa: ARG001
    """Let the queue go on."""
    service.resume_queue(name)
    return envelope("Goes on.", QueueOut.of(*service.one_queue(name)))


@router.get("/types/paused", response={200: Envelope[list[PausedTypeOut]], **ERRORS})
def list_paused_types(request: HttpRequest, query: Query[NamesQuery]) -> dict[str, Any]:  # noqa: ARG001  ninja's
    """List by name the types of which no job is started now. `meta.next_after` leads to the next page."""
    found = service.page_of_paused_types(**query.wanted)
    shown = [PausedTypeOut.of(each) for each in query.shown(found)]
    return envelope(f"{len(shown)} paused types.", shown, **query.meta([each.type for each in found]))


@router.post("/types/{name}/pause", response={200: Envelope[PausedTypeOut], **ERRORS})
def pause_type(request: HttpRequest, name: str, until: Time | None = None) -> dict[str, Any]:  # noqa: ARG001
    """Let no job of the type be started, in whatever queue."""
    return envelope("Paused.", PausedTypeOut.of(service.pause_type(name, until=until)))


@router.post("/types/{name}/resume", response={200: Envelope[None], **ERRORS})
def resume_type(request: HttpRequest, name: str) -> dict[str, Any]:  # noqa: ARG001
    """Let the type go on; harmless if it is not paused."""
    service.resume_type(name)
    return envelope("Goes on.")
