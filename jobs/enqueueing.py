"""How jobs are made: checked, and stored in the caller's transaction together with the wake-up of the workers.

One call is one statement, however many jobs it makes; only jobs that wait for others need a lock on their parents
first. A rollback takes the jobs and the wake-up with it. What exists already is never changed here. With
`DILAMME["SPOOL"]`, and outside a transaction, jobs are accepted while the database is away: see `jobs.spool`.
"""

import functools
import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, overload

from asgiref.sync import sync_to_async
from django.db import DatabaseError, InterfaceError
from django.utils import timezone

from jobs.conf import settings
from jobs.drafts import Draft, NewJob, Options, drafts_of
from jobs.errors import InvalidJob, UnknownDependency
from jobs.models import Job
from jobs.queries import DjangoSession, Session
from jobs.spool.forwarder import forwarder
from jobs.spool.records import SpooledJob
from jobs.states import FINAL, OnFailure, Status

__all__ = ["NewJob", "Options", "aenqueue", "aenqueue_many", "enqueue", "enqueue_many"]


def enqueue(type: str, payload: Mapping[str, Any] | None = None, **options: Any) -> Job:  # noqa: A002  the API's word
    """Make one job of the type called `type`; the options are those of `Options`.

    Returns the job as stored. Raises `UnknownType`, `InvalidPayload`, `InvalidJob` or `UnknownDependency` before
    anything is written.
    """
    return enqueue_many([NewJob(type, {} if payload is None else payload, Options(**options))])[0]


def enqueue_many(new_jobs: Iterable[NewJob]) -> Sequence[Job]:
    """Make many jobs, all or none, in one statement; returned in the order given."""
    drafts = drafts_of(new_jobs)
    if not drafts:
        return []
    session = DjangoSession()
    if any(draft.terms.parents for draft in drafts):
        with session.transaction():
            unmet, edges = _hold_parents(session, drafts)
            made = _insert(session, drafts, unmet)
            session.fetch("add_edges", **edges)
        return made
    if settings.SPOOL and session.is_free:
        return _insert_or_spool(session, drafts)
    return _insert(session, drafts, {})


aenqueue = sync_to_async(enqueue)
aenqueue_many = sync_to_async(enqueue_many)


def _insert(session: DjangoSession, drafts: Sequence[Draft], unmet: Mapping[int, int]) -> "Made":
    """Store the jobs, dated by the database's clock. Terms that jobs share are sent once."""
    made = Made(drafts, unmet)
    if len(drafts) == 1 and not unmet:
        _insert_one(session, drafts[0], made)
        return made
    terms = {id(draft.terms): draft.terms for draft in drafts}
    number = {key: n for n, key in enumerate(terms, 1)}
    ((made_at, _),) = session.fetch(
        "enqueue",
        ids=[draft.id for draft in drafts],
        payloads=[draft.text for draft in drafts],
        numbers=[number[id(draft.terms)] for draft in drafts],
        types=[each.kind.name for each in terms.values()],
        queues=[each.queue for each in terms.values()],
        priorities=[each.priority for each in terms.values()],
        run_ats=[each.run_at for each in terms.values()],
        max_attempts=[each.max_attempts for each in terms.values()],
        unmet=[unmet.get(key, 0) for key in terms],
        horizon=settings.horizon,
    )
    made.date(made_at)
    return made


def _insert_one(session: DjangoSession, draft: Draft, made: "Made") -> None:
    """Store one job; the object that the caller gets is built while the server writes the row."""
    terms = draft.terms
    ((made_at, _),) = session.fetch_while(
        made.build,
        "enqueue_one",
        id=draft.id,
        type=terms.kind.name,
        queue=terms.queue,
        priority=terms.priority,
        payload=draft.text,
        run_at=terms.run_at,
        max_attempts=terms.max_attempts,
        horizon=settings.horizon,
    )
    made.date(made_at)


class Made(Sequence[Job]):
    """The jobs that one call has made, as Django would read them: each is built when it is looked at, and kept.

    Most callers do not look at what they made ten thousand of, and the objects would cost more than the jobs.
    """

    def __init__(self, drafts: Sequence[Draft], unmet: Mapping[int, int]) -> None:
        self._drafts = drafts
        self._made_at: datetime | None = None  # until the database has said so
        self._unmet = unmet  # by the identity of terms: what jobs with these wait for
        self._alias = settings.DATABASE
        self._built: dict[int, Job] = {}

    def __len__(self) -> int:
        return len(self._drafts)

    @overload
    def __getitem__(self, index: int) -> Job: ...
    @overload
    def __getitem__(self, index: slice) -> list[Job]: ...
    def __getitem__(self, index: int | slice) -> Job | list[Job]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        number = range(len(self))[index]
        if (job := self._built.get(number)) is None:
            job = self._built[number] = self._build(self._drafts[number])
        return job

    def build(self) -> None:
        """Build all of them, for a caller who is sure to look."""
        for number in range(len(self)):
            self[number]

    def date(self, made_at: datetime) -> None:
        """Say when they were made."""
        self._made_at = made_at
        for job in self._built.values():
            job.created_at = made_at
            if job.run_at is None:
                job.scheduled_at = job.run_at = made_at

    def _build(self, draft: Draft) -> Job:
        row = _values(draft, self._made_at, self._unmet.get(id(draft.terms), 0))
        fields = _fields()
        return Job.from_db(self._alias, fields, list(map(row.get, fields)))


class Spooled(Made):
    """The jobs that one call has made while the database was away."""

    def _build(self, draft: Draft) -> Job:
        job = super()._build(draft)
        job.is_spooled, job._state.adding = True, True  # noqa: SLF001  it is not in the database yet
        return job


@functools.cache
def _fields() -> list[str]:
    return [column.attname for column in Job._meta.concrete_fields]  # noqa: SLF001  Django's documented API


def _values(draft: Draft, made_at: datetime | None, unmet: int) -> dict[str, Any]:
    """Return the columns of a new job by name; those that are missing here are null."""
    terms = draft.terms
    run_at = terms.run_at or made_at
    return {
        "id": draft.id,
        "payload": draft.payload,
        "type": terms.kind.name,
        "queue": terms.queue,
        "status": Status.PENDING.value,
        "priority": terms.priority,
        "scheduled_at": run_at,
        "run_at": run_at,
        "created_at": made_at,
        "attempt": 0,
        "attempts_refunded": 0,
        "max_attempts": terms.max_attempts,
        "unmet": unmet,
        "last_error": "",
    }


def _insert_or_spool(session: DjangoSession, drafts: Sequence[Draft]) -> Made:
    """Store the jobs, or keep them on disk until the database is back; no transaction is open."""
    forwarder.attend()
    if not forwarder.is_diverting:
        try:
            return _insert(session, drafts, {})
        except (DatabaseError, InterfaceError) as error:
            if not session.found_away(error):
                raise
    return _spool(drafts)


def _spool(drafts: Sequence[Draft]) -> Made:
    now = timezone.now()
    forwarder.keep({draft.id: _spooled(draft, now).pack() for draft in drafts})
    spooled = Spooled(drafts, {})
    spooled.date(now)
    return spooled


def _spooled(draft: Draft, now: datetime) -> SpooledJob:
    terms = draft.terms
    return SpooledJob(
        id=draft.id,
        type=terms.kind.name,
        queue=terms.queue,
        priority=terms.priority,
        payload=draft.text,
        max_attempts=terms.max_attempts,
        accepted_at=now,
        run_at=terms.run_at,
    )


def _hold_parents(session: Session, drafts: Sequence[Draft]) -> tuple[dict[int, int], dict[str, list[Any]]]:
    """Lock every parent; return how many of them jobs wait for, by the identity of their terms, and the edges."""
    wanted = sorted({parent for draft in drafts for parent in draft.terms.parents})
    statuses: dict[uuid.UUID, str] = dict(session.fetch("lock_parents", ids=wanted))
    if missing := [str(parent) for parent in wanted if parent not in statuses]:
        shown = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
        raise UnknownDependency(f"No job has the id {shown}: a job can only depend on jobs that exist.")
    unmet: dict[int, int] = {}
    edges: dict[str, list[Any]] = {"children": [], "parents": [], "on_failure": [], "settled": []}
    for draft in drafts:
        terms = draft.terms
        settled = [_is_settled(parent, statuses[parent], terms.on_failure) for parent in terms.parents]
        unmet[id(terms)] = len(settled) - sum(settled)
        edges["children"] += [draft.id] * len(settled)
        edges["parents"] += terms.parents
        edges["on_failure"] += [terms.on_failure] * len(settled)
        edges["settled"] += settled
    return unmet, edges


def _is_settled(parent: uuid.UUID, status: str, on_failure: str) -> bool:
    if status in FINAL and status != Status.COMPLETED and on_failure == OnFailure.CANCEL:
        raise InvalidJob(
            f"The job {parent} has the status {status}, so a job that depends on it would never run: retry it first, "
            f"or use on_failure='run'.",
            field="dependency_ids",
        )
    return status in FINAL
