"""How final jobs are made pending again by hand, together with what was cancelled because of them.

A job is revived only if nothing it waits for is dead any more: every edge is looked at anew, while the jobs and their
parents are held. What stays cancelled because of another dead parent then names that one.
"""

import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from jobs.conf import settings
from jobs.queries import DjangoSession
from jobs.states import RETRYABLE, EventKind, OnFailure, Status
from scheduling import graph

_DEAD = (Status.FAILED, Status.CANCELLED)


class _Target(NamedTuple):
    id: uuid.UUID
    status: str
    cancelled_because: uuid.UUID | None
    unique_key: str | None
    will_hold_key: bool  # once it is pending again


class _Edge(NamedTuple):
    child: uuid.UUID
    parent: uuid.UUID
    on_failure: str
    status: str  # of the parent
    cancelled_because: uuid.UUID | None  # the parent


@dataclass(slots=True)
class Retried:
    """What became of the jobs that were asked for, by id, and which others wait again."""

    retried: list[uuid.UUID] = field(default_factory=list)
    revived: list[uuid.UUID] = field(default_factory=list)
    refused: dict[uuid.UUID, str] = field(default_factory=dict)


def retry_held(session: DjangoSession, ids: Sequence[uuid.UUID], actor: str, *, downstream: bool) -> Retried:
    """Retry jobs in the open transaction; with `downstream` also what was cancelled because of them."""
    targets = _lock(session, ids)
    result = Retried(refused={t.id: _why_not(t.status) for t in targets.values() if t.status not in RETRYABLE})
    roots = [id_ for id_ in targets if id_ not in result.refused]
    below = _lock_downstream(session, roots) if downstream and roots else {}
    candidates = {id_: targets[id_] for id_ in roots} | below
    edges = _edges_to(session, list(candidates))
    revivable = _revivable(candidates, edges, _key_holders(session, candidates.values()))
    result.refused |= {id_: revivable.why_not[id_] for id_ in roots if id_ in revivable.why_not}
    result.retried = [id_ for id_ in revivable.unmet if id_ in targets]
    result.revived = [id_ for id_ in revivable.unmet if id_ not in targets]
    _write(session, revivable.unmet, targets, actor)
    left = [id_ for id_ in revivable.why_not if candidates[id_].cancelled_because]
    _blame(session, left, revivable.unmet, edges)
    return result


def _lock(session: DjangoSession, ids: Iterable[uuid.UUID]) -> dict[uuid.UUID, _Target]:
    return {row[0]: _Target._make(row) for row in session.fetch("lock_jobs", ids=list(ids))}


def _lock_downstream(session: DjangoSession, roots: Sequence[uuid.UUID]) -> dict[uuid.UUID, _Target]:
    """Hold what was cancelled because of these jobs; asked again until no cascade has added to it meanwhile."""
    held: dict[uuid.UUID, _Target] = {}
    while new := {id_ for (id_,) in session.fetch("downstream", roots=list(roots))} - held.keys() - set(roots):
        held |= _lock(session, new)
    return {id_: target for id_, target in held.items() if target.status == Status.CANCELLED}


def _edges_to(session: DjangoSession, ids: Sequence[uuid.UUID]) -> Mapping[uuid.UUID, list[_Edge]]:
    """Return what each of these jobs waits for. The parents are held, so that none can end unseen."""
    edges: defaultdict[uuid.UUID, list[_Edge]] = defaultdict(list)
    found = session.fetch("edges_to", ids=list(ids))
    if found:
        session.fetch("lock_parents", ids=sorted({row[1] for row in found}))
        found = session.fetch("edges_to", ids=list(ids))  # as they stand now that they are held
    for row in found:
        edges[row[0]].append(_Edge._make(row))
    return edges


@dataclass(slots=True)
class _Revivable:
    """Which jobs may wait again, each with how many of its parents are not settled; and why others may not."""

    unmet: dict[uuid.UUID, int] = field(default_factory=dict)
    why_not: dict[uuid.UUID, str] = field(default_factory=dict)


def _revivable(
    candidates: Mapping[uuid.UUID, _Target],
    edges: Mapping[uuid.UUID, list[_Edge]],
    holders: Mapping[str, uuid.UUID],
) -> _Revivable:
    """Decide parents first, for what waits for a job that stays dead stays so as well."""
    result, holders = _Revivable(), dict(holders)
    inside = {id_: {e.parent for e in edges.get(id_, ()) if e.parent in candidates} for id_ in candidates}
    for id_ in graph.in_order(inside):
        target, waits_for = candidates[id_], edges.get(id_, ())
        key = target.unique_key
        if dead := next((e for e in waits_for if _is_dead(e, result.unmet)), None):
            result.why_not[id_] = (
                f"It waits for the job {dead.parent}, which is {dead.status}: retry that one, and this one follows."
            )
        elif key is not None and key in holders:
            result.why_not[id_] = f"Its unique key {key!r} is held by the job {holders[key]} by now."
        else:
            result.unmet[id_] = sum(_is_open(e, result.unmet) for e in waits_for)
            if key is not None and target.will_hold_key:
                holders[key] = id_  # of two that come back with one key, the first has it
    return result


def _is_dead(edge: _Edge, revived: Mapping[uuid.UUID, int]) -> bool:
    return edge.on_failure == OnFailure.CANCEL and edge.status in _DEAD and edge.parent not in revived


def _is_open(edge: _Edge, revived: Mapping[uuid.UUID, int]) -> bool:
    return edge.parent in revived or edge.status in (Status.PENDING, Status.PROCESSING)


def _key_holders(session: DjangoSession, targets: Iterable[_Target]) -> Mapping[str, uuid.UUID]:
    """Return who has the unique keys of these jobs by now."""
    keys = [target.unique_key for target in targets if target.unique_key is not None]
    return {key: id_ for key, id_ in session.fetch("key_holders", keys=keys)} if keys else {}  # noqa: C416


def _write(
    session: DjangoSession, unmet: Mapping[uuid.UUID, int], targets: Mapping[uuid.UUID, _Target], actor: str
) -> None:
    if not unmet:
        return
    session.fetch(
        "retry",
        ids=list(unmet),
        unmet=list(unmet.values()),
        kinds=[str(EventKind.RETRIED if id_ in targets else EventKind.REVIVED) for id_ in unmet],
        actor=actor,
        horizon=settings.horizon,
    )


def _blame(
    session: DjangoSession,
    ids: Sequence[uuid.UUID],
    revived: Mapping[uuid.UUID, int],
    edges: Mapping[uuid.UUID, list[_Edge]],
) -> None:
    """Let what stays cancelled name the job because of which it does; parents come first.

    It names nobody if only its unique key is in the way: then it is the one that has to be retried.
    """
    roots: dict[uuid.UUID, uuid.UUID | None] = {}
    for id_ in ids:
        dead = next((e for e in edges.get(id_, ()) if _is_dead(e, revived)), None)
        roots[id_] = None if dead is None else _root_of(dead, roots, revived)
    if roots:
        session.fetch("blame", ids=list(roots), roots=list(roots.values()))


def _root_of(edge: _Edge, roots: Mapping[uuid.UUID, uuid.UUID | None], revived: Mapping[uuid.UUID, int]) -> uuid.UUID:
    """Return with which job the death of this parent began."""
    root = roots.get(edge.parent, edge.cancelled_because)
    return edge.parent if root is None or root in revived else root


def _why_not(status: str) -> str:
    if status == Status.COMPLETED:
        return "It has completed; enqueue a new job to run it again."
    return f"It is {status}; only failed and cancelled jobs can be retried."
