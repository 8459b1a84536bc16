"""How jobs are taken: in one statement, most urgent first, without waiting for what others have locked."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from jobs.claims import Claim
from jobs.conf import settings
from jobs.lifecycle.controls import Controls
from jobs.lifecycle.frontier import Frontier
from jobs.pipeline import Row
from jobs.queries import Fetch, Session


class Appetite:
    """Who claims, from which queues (None for every queue), and from where on."""

    __slots__ = ("controls", "frontier", "worker_id")

    def __init__(self, worker_id: uuid.UUID, queues: Sequence[str] | None = None) -> None:
        self.worker_id = worker_id
        self.frontier = Frontier(queues)
        self.controls = Controls()


@dataclass(frozen=True, slots=True)
class Claimed:
    """What was taken, how many due jobs were seen, and how many were asked for."""

    claims: list[Claim] = field(default_factory=list)
    seen: int = 0
    room: int = 0

    wait: float | None = None  # seconds until a rate lets the next job start

    @property
    def may_have_left_some(self) -> bool:
        """Whether there may be more: as many were due as were asked for, or another worker was quicker."""
        return self.seen > 0 and (self.seen == self.room or len(self.claims) < self.seen)


def claim_of(session: Session, appetite: Appetite, room: int) -> list[Fetch]:
    """Return the fetches that take up to `room` due jobs for a worker; none if there is nothing to take.

    The attempt counts from there. Limited queues are claimed from one by one, each held meanwhile.
    """
    if room <= 0 or not _looked(session, appetite.frontier):
        return []
    if appetite.controls.is_stale:
        appetite.controls.look(session)
    if appetite.controls.hold_back_nothing:
        return [_plain_claim(appetite, room, appetite.frontier.as_arrays())]
    return _careful_claims(appetite, room)


def _careful_claims(appetite: Appetite, room: int) -> list[Fetch]:
    controls, frontier = appetite.controls, appetite.frontier
    open_queues = [queue for queue in frontier.queues() if queue not in controls.paused]
    careful = [queue for queue in open_queues if queue in controls.limited or controls.paused_types]
    plain = [queue for queue in open_queues if queue not in careful]
    fetches = [_plain_claim(appetite, room, frontier.as_arrays(plain))] if plain else []
    share = max(1, room // (len(careful) + bool(plain))) if careful else 0
    for queue in sorted(careful):  # in one order, for each is held until the end of the transaction
        parameters = _claim_parameters(appetite, share) | frontier.as_arrays([queue]) | {"queue": queue}
        del parameters["queues"]
        fetches += [
            ("hold_queue", {"queue": queue}),
            ("claim_limited", parameters | {"paused": controls.paused_types}),
        ]
    return fetches


def _plain_claim(appetite: Appetite, room: int, places: dict[str, Any]) -> Fetch:
    return "claim", _claim_parameters(appetite, room) | places


def _claim_parameters(appetite: Appetite, room: int) -> dict[str, Any]:
    aging = settings.AGING
    return {
        "worker": appetite.worker_id,
        "room": room,
        "step": aging.step,
        "decrement": aging.decrement,
        "thresholds": list(aging.thresholds),
    }


def read_claims(
    appetite: Appetite, room: int, claims: Sequence[Fetch], answers: Sequence[Sequence[Row]], moves: int
) -> Claimed:
    """Return what was taken, given the rows of each fetch, and the frontier's `moves` when they were made."""
    whole = Claimed(room=room)
    for (statement, parameters), rows in zip(claims, answers, strict=True):
        if statement == "claim":
            part = _read_claim(appetite, room, rows, moves)
        elif statement == "claim_limited":
            part = _read_careful_claim(rows, room, parameters["room"])
        else:
            continue
        waits = [wait for wait in (whole.wait, part.wait) if wait is not None]
        whole = Claimed(whole.claims + part.claims, whole.seen + part.seen, room, min(waits, default=None))
    return whole


def _read_careful_claim(rows: Sequence[Row], room: int, share: int) -> Claimed:
    """Return what the limits let pass; the frontier stays, for something may have been passed over."""
    claims = [] if rows[0][0] is None else [Claim._make(row[:-1]) for row in rows]
    return Claimed(claims, seen=room if len(claims) == share else len(claims), wait=rows[0][-1])


def _read_claim(appetite: Appetite, room: int, rows: Sequence[Row], moves: int) -> Claimed:
    *_, seen, passed_over = rows[0]
    claims = [] if rows[0][0] is None else [Claim._make(row[:-2]) for row in rows]
    if not passed_over:
        appetite.frontier.advance(claims, moves)
    return Claimed(claims, seen, room)


def _looked(session: Session, frontier: Frontier) -> bool:
    """Ask the database where jobs begin, if it is time to; return whether there are any."""
    if frontier.is_stale:
        frontier.look(session)
    return len(frontier) > 0


def upcoming(session: Session, appetite: Appetite, room: int) -> list[float]:
    """Return in how many seconds the next jobs fall due, soonest first, up to `room` and the horizon."""
    frontier = appetite.frontier
    if not _looked(session, frontier):
        return []
    rows = session.fetch("upcoming", horizon=settings.horizon, room=room, **frontier.as_arrays())
    return [seconds for (seconds,) in rows]


def held(session: Session, worker_id: uuid.UUID) -> list[Claim]:
    """Return what the database says this worker holds.

    After a connection broke during a commit a worker may own jobs it never heard of; nobody else would run them while
    its lease stands.
    """
    return [Claim(*row) for row in session.fetch("held", worker=worker_id)]
