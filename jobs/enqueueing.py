"""How jobs are made: checked, and stored in the caller's transaction together with the wake-up of the workers.

One call is one statement, however many jobs it makes; only jobs that wait for others need a lock on their parents
first. A rollback takes the jobs and the wake-up with it. What exists already is never changed here. With
`DILAMME["SPOOL"]`, and outside a transaction, jobs are accepted while the database is away: see `jobs.spool`.
"""

import uuid
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from asgiref.sync import sync_to_async
from django.db import DatabaseError, InterfaceError
from django.utils import timezone

from jobs import storable
from jobs.conf import settings
from jobs.errors import InvalidJob, InvalidPayload, UnknownDependency
from jobs.ids import uuid7s
from jobs.limits import (
    ATTEMPTS_RULE,
    DEPENDENCY_LIMIT,
    EARLIEST,
    LATEST,
    NAME_RULE,
    PRIORITY_RULE,
    TIME_RULE,
    valid_attempts,
    valid_name,
    valid_priority,
)
from jobs.models import Job
from jobs.queries import DjangoSession, Session
from jobs.registry import registry
from jobs.spool.forwarder import forwarder
from jobs.spool.records import SpooledJob
from jobs.states import FINAL, OnFailure, Status


@dataclass(frozen=True, slots=True)
class Options:
    """How a job is to run. What is None falls back to its type, then to the settings."""

    queue: str | None = None
    priority: float | None = None  # 1 High to 3 Low
    run_at: datetime | None = None  # aware; None for now
    max_attempts: int | None = None
    depends_on: Collection[uuid.UUID] = field(default_factory=tuple)
    on_failure: str = OnFailure.CANCEL  # what the failure of a parent does to this job


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job to be made: for `enqueue_many`."""

    type: str
    payload: Mapping[str, Any] = field(default_factory=dict)
    options: Options = field(default_factory=Options)


def enqueue(type: str, payload: Mapping[str, Any] | None = None, **options: Any) -> Job:  # noqa: A002  the API's word
    """Make one job of the type called `type`; the options are those of `Options`.

    Returns the job as stored. Raises `UnknownType`, `InvalidPayload`, `InvalidJob` or `UnknownDependency` before
    anything is written.
    """
    return enqueue_many([NewJob(type, {} if payload is None else payload, Options(**options))])[0]


def enqueue_many(new_jobs: Iterable[NewJob]) -> list[Job]:
    """Make many jobs, all or none, in one statement; returned in the order given."""
    jobs = [_checked(new) for new in new_jobs]
    if not jobs:
        return []
    for job, id_ in zip(jobs, uuid7s(len(jobs)), strict=True):
        job.row.id = id_
    session = DjangoSession()
    if any(job.parents for job in jobs):
        with session.transaction():
            edges = _hold_parents(session, jobs)
            _insert(session, jobs)
            session.fetch("add_edges", **edges)
    elif settings.SPOOL and session.is_free:
        _insert_or_spool(session, jobs)
    else:
        _insert(session, jobs)
    return [job.row for job in jobs]


aenqueue = sync_to_async(enqueue)
aenqueue_many = sync_to_async(enqueue_many)


@dataclass(slots=True)
class _Checked:
    row: Job
    payload: str  # JSON text, storable
    run_at: datetime | None
    parents: list[uuid.UUID]
    on_failure: OnFailure


def _checked(new: NewJob) -> _Checked:
    """Return the job with its defaults filled in, every part of it checked."""
    kind, options = registry.get(new.type), new.options
    row = Job(
        type=new.type,
        queue=_first(options.queue, kind.queue, settings.DEFAULT_QUEUE),
        priority=_first(options.priority, kind.priority, settings.DEFAULT_PRIORITY),
        max_attempts=_first(options.max_attempts, kind.max_attempts, settings.MAX_ATTEMPTS),
    )
    _check(row, options)
    row.priority = float(row.priority)
    row.payload = kind.normalise(new.payload)
    try:
        payload = storable.json_text(row.payload, settings.MAX_PAYLOAD_BYTES, "payload")
    except storable.NotStorable as error:
        raise InvalidPayload(f"{new.type}: {error}") from None
    return _Checked(row, payload, _run_at(options.run_at), _parents(options.depends_on), OnFailure(options.on_failure))


def _first(*values: Any) -> Any:
    return next(value for value in values if value is not None)


def _check(row: Job, options: Options) -> None:
    if not valid_name(row.queue):
        raise InvalidJob(f"queue is {row.queue!r}; {NAME_RULE}", field="queue")
    if not valid_priority(row.priority):
        raise InvalidJob(f"priority is {row.priority!r}; {PRIORITY_RULE}", field="priority")
    if not valid_attempts(row.max_attempts):
        raise InvalidJob(f"max_attempts is {row.max_attempts!r}; {ATTEMPTS_RULE}", field="max_attempts")
    if options.on_failure not in OnFailure.values:
        raise InvalidJob(f"on_failure is {options.on_failure!r}; use cancel or run.", field="on_failure")


def _run_at(given: datetime | None) -> datetime | None:
    """Return the time in UTC: PostgreSQL knows no offset of 16 hours or more."""
    if given is None:
        return None
    if not isinstance(given, datetime):
        raise InvalidJob(f"run_at is {given!r}; use an aware datetime.", field="scheduled_at")
    if timezone.is_naive(given):
        raise InvalidJob(f"run_at is {given} without a time zone; use an aware datetime.", field="scheduled_at")
    if not EARLIEST <= given <= LATEST:
        raise InvalidJob(f"run_at is {given}; {TIME_RULE}", field="scheduled_at")
    return given.astimezone(UTC)


def _parents(given: Collection[uuid.UUID]) -> list[uuid.UUID]:
    """Return the ids of the parents, each once."""
    if isinstance(given, str) or not isinstance(given, Collection):
        raise InvalidJob(f"depends_on is {given!r}; use a list of job ids.", field="dependency_ids")
    for parent in given:
        if not isinstance(parent, uuid.UUID):
            text = f"depends_on contains {parent!r} of type {type(parent).__name__}; use ids of jobs, which are UUIDs."
            raise InvalidJob(text, field="dependency_ids")
    if len(given) > DEPENDENCY_LIMIT:
        text = f"{len(given):,} dependencies; at most {DEPENDENCY_LIMIT:,} are possible."
        raise InvalidJob(text, field="dependency_ids")
    return list(dict.fromkeys(given))


def _insert(session: Session, jobs: Collection[_Checked]) -> None:
    """Store the jobs, and take over what the database decided."""
    rows = [job.row for job in jobs]
    stored = session.fetch(
        "enqueue",
        ids=[row.id for row in rows],
        types=[row.type for row in rows],
        queues=[row.queue for row in rows],
        priorities=[row.priority for row in rows],
        payloads=[job.payload for job in jobs],
        run_ats=[job.run_at for job in jobs],
        max_attempts=[row.max_attempts for row in rows],
        unmet=[row.unmet for row in rows],
        horizon=settings.horizon,
    )
    times = {id_: (created_at, run_at) for id_, created_at, run_at, _ in stored}
    for row in rows:
        row.created_at, row.run_at = times[row.id]
        row.scheduled_at = row.run_at
        row._state.adding, row._state.db = False, settings.DATABASE  # noqa: SLF001  as if Django had read it


def _insert_or_spool(session: DjangoSession, jobs: Collection[_Checked]) -> None:
    """Store the jobs, or keep them on disk until the database is back; no transaction is open."""
    forwarder.attend()
    if not forwarder.is_diverting:
        try:
            _insert(session, jobs)
        except (DatabaseError, InterfaceError) as error:
            if not session.found_away(error):
                raise
        else:
            return
    _spool(jobs)


def _spool(jobs: Collection[_Checked]) -> None:
    now = timezone.now()
    records = {}
    for job in jobs:
        row = job.row
        row.created_at, row.run_at = now, job.run_at or now
        row.scheduled_at, row.is_spooled = row.run_at, True
        records[row.id] = SpooledJob(
            row.id, row.type, row.queue, row.priority, job.payload, row.max_attempts, now, job.run_at
        ).pack()
    forwarder.keep(records)


def _hold_parents(session: Session, jobs: Collection[_Checked]) -> dict[str, list[Any]]:
    """Lock every parent, count what each job waits for, and return the edges to store."""
    wanted = sorted({parent for job in jobs for parent in job.parents})
    statuses: dict[uuid.UUID, str] = dict(session.fetch("lock_parents", ids=wanted))
    if missing := [str(parent) for parent in wanted if parent not in statuses]:
        shown = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
        raise UnknownDependency(f"No job has the id {shown}: a job can only depend on jobs that exist.")
    edges: dict[str, list[Any]] = {"children": [], "parents": [], "on_failure": [], "settled": []}
    for job in jobs:
        for parent in job.parents:
            settled = _is_settled(parent, statuses[parent], job.on_failure)
            job.row.unmet += not settled
            edges["children"].append(job.row.id)
            edges["parents"].append(parent)
            edges["on_failure"].append(job.on_failure)
            edges["settled"].append(settled)
    return edges


def _is_settled(parent: uuid.UUID, status: str, on_failure: str) -> bool:
    if status in FINAL and status != Status.COMPLETED and on_failure == OnFailure.CANCEL:
        raise InvalidJob(
            f"The job {parent} has the status {status}, so a job that depends on it would never run: retry it first, "
            f"or use on_failure='run'.",
            field="dependency_ids",
        )
    return status in FINAL
