"""How jobs are made: checked, and stored in the caller's transaction together with the wake-up of the workers.

One call is one statement, however many jobs it makes; only jobs that wait for others need a lock on their parents
first. A rollback takes the jobs and the wake-up with it. What exists already is never changed here. With
`DILAMME["SPOOL"]`, and outside a transaction, jobs are accepted while the database is away: see `jobs.spool`.
"""

import functools
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from asgiref.sync import sync_to_async
from django.db import DatabaseError, InterfaceError
from django.utils import timezone

from jobs.conf import settings
from jobs.drafts import Draft, NewJob, Options, drafts_of
from jobs.edges import edges_of
from jobs.errors import UniqueKeyHeld
from jobs.made import Made, Spooled
from jobs.models import Job
from jobs.patience import patiently
from jobs.queries import DjangoSession
from jobs.spool.forwarder import forwarder
from jobs.spool.records import SpooledJob
from jobs.states import OnConflict, UniqueScope

_TRIES = 5  # to store a job whose unique key others hold and set free

__all__ = ["NewJob", "Options", "aenqueue", "aenqueue_many", "enqueue", "enqueue_many"]


def enqueue(type: str, payload: Mapping[str, Any] | None = None, **options: Any) -> Job:  # noqa: A002  the API's word
    """Make one job of the type called `type`; the options are those of `Options`.

    Returns the job as stored. Raises `UnknownType`, `InvalidPayload`, `InvalidJob` or `UnknownDependency` before
    anything is written.
    """
    return enqueue_many([NewJob(type, {} if payload is None else payload, Options(**options))])[0]


def enqueue_many(new_jobs: Iterable[NewJob]) -> Sequence[Job]:
    """Make many jobs, all or none, in one statement; returned in the order given.

    A job whose unique key is held is not made: what comes back in its place has `created` False. With
    `on_conflict="raise"` nothing is made, and `UniqueKeyHeld` names the job that has the key.
    """
    drafts = drafts_of(new_jobs)
    if not drafts:
        return []
    session = DjangoSession()
    terms = {id(draft.terms): draft.terms for draft in drafts}
    if all(each.is_plain for each in terms.values()):
        if settings.SPOOL and session.is_free:
            return _insert_or_spool(session, drafts)
        return _insert(session, drafts, {})
    return store(session, drafts, {draft.id: draft.terms.parents for draft in drafts})


aenqueue = sync_to_async(enqueue)
aenqueue_many = sync_to_async(enqueue_many)


def store(session: DjangoSession, drafts: Sequence[Draft], parents: Mapping[uuid.UUID, Sequence[uuid.UUID]]) -> Made:
    """Store jobs that may wait for others or have unique keys, in one transaction.

    `parents` says what each waits for; those of them that are among the jobs themselves come before it.
    """
    return patiently(functools.partial(_store, session, drafts, parents))


def _store(session: DjangoSession, drafts: Sequence[Draft], parents: Mapping[uuid.UUID, Sequence[uuid.UUID]]) -> Made:
    with session.transaction():
        edges = edges_of(session, drafts, parents)
        if any(draft.unique_key is not None for draft in drafts):
            made = _insert_unique(session, drafts, edges.unmet)
            edges = edges.without(made.existing)
        else:
            made = _insert(session, drafts, edges.unmet)
        if edges.children:
            session.fetch("add_edges", **edges.as_arrays())
        return made


def _insert(session: DjangoSession, drafts: Sequence[Draft], unmet: Mapping[uuid.UUID, int]) -> Made:
    """Store the jobs, dated by the database's clock. Terms that jobs share are sent once."""
    made = Made(drafts, unmet)
    if len(drafts) == 1 and drafts[0].terms.is_plain:
        _insert_one(session, drafts[0], made)
        return made
    ((made_at, _),) = session.fetch("enqueue", **_as_arrays(drafts, unmet))
    made.date(made_at)
    return made


def _insert_unique(session: DjangoSession, drafts: Sequence[Draft], unmet: Mapping[uuid.UUID, int]) -> Made:
    """Store those whose key is free; a key that is set free meanwhile is tried for again."""
    made = Made(drafts, unmet)
    remaining = list(drafts)
    for _ in range(_TRIES):
        arrays = _as_arrays(remaining, unmet) | {
            "keys": [draft.unique_key for draft in remaining],
            "lasting": [_lasts(draft) for draft in remaining],
        }
        ((made_at, ids, _),) = session.fetch("enqueue_unique", **arrays)
        made.date(made_at)
        stored = set(ids)
        remaining = [draft for draft in remaining if draft.id not in stored]
        holders = _holders_of(session, [draft.unique_key for draft in remaining if draft.unique_key])
        made.existing |= {draft.id: holders[draft.unique_key] for draft in remaining if draft.unique_key in holders}
        remaining = [draft for draft in remaining if draft.unique_key not in holders]
        if not remaining:
            _meet(session, drafts, made)
            return made
    raise UniqueKeyHeld(f"The unique key {remaining[0].unique_key!r} changes hands too fast; try again.", None)


def _holders_of(session: DjangoSession, keys: list[str]) -> dict[str | None, uuid.UUID]:
    """Return which jobs hold these unique keys."""
    return {key: id_ for key, id_ in session.fetch("key_holders", keys=keys)} if keys else {}  # noqa: C416


def _lasts(draft: Draft) -> bool:
    return draft.terms.uniqueness is None or draft.terms.uniqueness.scope == UniqueScope.UNFINISHED


def _meet(session: DjangoSession, drafts: Sequence[Draft], made: Made) -> None:
    """Do what was asked for with those whose key another job holds."""
    existing, own = made.existing, {draft.id for draft in drafts}
    met = [draft for draft in drafts if draft.id in existing]
    rules = {draft.id: draft.terms.uniqueness.on_conflict for draft in met if draft.terms.uniqueness}
    for draft in met:
        if rules[draft.id] == OnConflict.RAISE:
            raise _held(draft.unique_key, existing[draft.id], own)
    # Of several for one job the last counts.
    replacing = {existing[draft.id]: draft for draft in met if rules[draft.id] == OnConflict.REPLACE}
    if replacing:
        session.fetch(
            "replace",
            ids=list(replacing),
            payloads=[draft.text for draft in replacing.values()],
            run_ats=[draft.terms.run_at for draft in replacing.values()],
            horizon=settings.horizon,
        )
        made.replaced = own & replacing.keys()


def _held(key: str | None, holder: uuid.UUID, own: Collection[uuid.UUID]) -> UniqueKeyHeld:
    if holder in own:  # and gone with the transaction
        return UniqueKeyHeld(f"Two of these jobs have the unique key {key!r}; give one of them another.", None)
    return UniqueKeyHeld(f"The unique key {key!r} is held by the job {holder}.", holder)


def _as_arrays(drafts: Sequence[Draft], unmet: Mapping[uuid.UUID, int]) -> dict[str, Any]:
    terms = {id(draft.terms): draft.terms for draft in drafts}
    number = {key: n for n, key in enumerate(terms, 1)}
    waking = {id(draft.terms) for draft in drafts if not unmet.get(draft.id)} if unmet else terms
    return {
        "ids": [draft.id for draft in drafts],
        "payloads": [draft.text for draft in drafts],
        "unmet": [unmet.get(draft.id, 0) for draft in drafts],
        "numbers": [number[id(draft.terms)] for draft in drafts],
        "types": [each.kind.name for each in terms.values()],
        "queues": [each.queue for each in terms.values()],
        "priorities": [each.priority for each in terms.values()],
        "run_ats": [each.run_at for each in terms.values()],
        "max_attempts": [each.max_attempts for each in terms.values()],
        "workflows": [each.workflow for each in terms.values()],
        "concurrency_keys": [each.concurrency_key for each in terms.values()],
        "steps": [each.step for each in terms.values()],
        "metadatas": [each.metadata for each in terms.values()],
        "timeouts": [each.timeout for each in terms.values()],
        "expire_ats": [each.expires_at for each in terms.values()],
        "wakes": [key in waking for key in terms],
        "horizon": settings.horizon,
    }


def _insert_one(session: DjangoSession, draft: Draft, made: Made) -> None:
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
        commits=session.is_free,
    )
    made.date(made_at)


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
