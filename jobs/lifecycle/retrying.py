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
    attempt: int
    unique_key: str | None


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
    edges = _edges_to(session, [*roots, *below])
    revivable = _revivable(roots, below, edges)
    for id_ in roots:
        if reason := revivable.why_not.get(id_):
            result.refused[id_] = reason
    taken = _keys_taken(session, [t for t in {**targets, **below}.values() if t.id in revivable.unmet])
    result.refused |= {id_: text for id_, text in taken.items() if id_ in targets}
    unmet = {id_: count for id_, count in revivable.unmet.items() if id_ not in taken}
    if taken:  # whatever waits for those cannot be revived either
        unmet = _revivable([i for i in roots if i not in taken], {i: t for i, t in below.items() if i not in taken},
                           edges).unmet  # fmt: skip
    result.retried = [id_ for id_ in unmet if id_ in targets]
    result.revived = [id_ for id_ in unmet if id_ not in targets]
    _write(session, unmet, targets, actor)
    left = [*below, *(t.id for t in targets.values() if t.cancelled_because and t.id not in below)]
    _blame(session, [id_ for id_ in left if id_ not in unmet], set(unmet), edges)
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
    roots: Sequence[uuid.UUID], below: Mapping[uuid.UUID, _Target], edges: Mapping[uuid.UUID, list[_Edge]]
) -> _Revivable:
    result = _Revivable()
    candidates = {*roots, *below}
    inside = {id_: {e.parent for e in edges.get(id_, ()) if e.parent in candidates} for id_ in candidates}
    for id_ in graph.in_order(inside):
        dead = next((e for e in edges.get(id_, ()) if _is_dead(e, result.unmet)), None)
        if dead is None:
            result.unmet[id_] = sum(_is_open(e, result.unmet) for e in edges.get(id_, ()))
        else:
            result.why_not[id_] = (
                f"It waits for the job {dead.parent}, which is {dead.status}: retry that one, and this one follows."
            )
    return result


def _is_dead(edge: _Edge, revived: Mapping[uuid.UUID, int]) -> bool:
    return edge.on_failure == OnFailure.CANCEL and edge.status in _DEAD and edge.parent not in revived


def _is_open(edge: _Edge, revived: Mapping[uuid.UUID, int]) -> bool:
    return edge.parent in revived or edge.status in (Status.PENDING, Status.PROCESSING)


def _keys_taken(session: DjangoSession, targets: Sequence[_Target]) -> dict[uuid.UUID, str]:
    """Return which of these jobs cannot come back, because another job has their unique key by now."""
    if not (keys := [t.unique_key for t in targets if t.unique_key is not None]):
        return {}
    holders: dict[str, uuid.UUID] = {key: id_ for key, id_ in session.fetch("key_holders", keys=keys)}  # noqa: C416
    taken = {}
    for target in targets:
        if target.unique_key is None:
            continue
        if holder := holders.get(target.unique_key):
            taken[target.id] = f"Its unique key {target.unique_key!r} is held by the job {holder} by now."
        holders.setdefault(target.unique_key, target.id)  # of two that come back with one key, the first has it
    return taken


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
    revived: set[uuid.UUID],
    edges: Mapping[uuid.UUID, list[_Edge]],
) -> None:
    """Let what stays cancelled name the job because of which it does. Parents come before children."""
    roots: dict[uuid.UUID, uuid.UUID] = {}
    remaining = set(ids)
    inside = {id_: {e.parent for e in edges.get(id_, ()) if e.parent in remaining} for id_ in ids}
    for id_ in graph.in_order(inside):
        for edge in edges.get(id_, ()):
            if _is_dead(edge, dict.fromkeys(revived, 0)):
                roots[id_] = roots.get(edge.parent) or edge.cancelled_because or edge.parent
                break
    if roots:
        session.fetch("blame", ids=list(roots), roots=list(roots.values()))


def _why_not(status: str) -> str:
    if status == Status.COMPLETED:
        return "It has completed; enqueue a new job to run it again."
    return f"It is {status}; only failed and cancelled jobs can be retried."
