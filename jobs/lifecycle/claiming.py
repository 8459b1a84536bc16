"""How jobs are taken: in one statement, most urgent first, without waiting for what others have locked."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field

from jobs.claims import Claim
from jobs.conf import settings
from jobs.lifecycle.frontier import Frontier
from jobs.pipeline import Row
from jobs.queries import Fetch, Session


class Appetite:
    """Who claims, from which queues (None for every queue), and from where on."""

    __slots__ = ("frontier", "worker_id")

    def __init__(self, worker_id: uuid.UUID, queues: Sequence[str] | None = None) -> None:
        self.worker_id = worker_id
        self.frontier = Frontier(queues)


@dataclass(frozen=True, slots=True)
class Claimed:
    """What was taken, how many due jobs were seen, and how many were asked for."""

    claims: list[Claim] = field(default_factory=list)
    seen: int = 0
    room: int = 0

    @property
    def may_have_left_some(self) -> bool:
        """Whether there may be more: as many were due as were asked for, or another worker was quicker."""
        return self.seen > 0 and (self.seen == self.room or len(self.claims) < self.seen)


def claim_of(session: Session, appetite: Appetite, room: int) -> list[Fetch]:
    """Return the fetch that takes up to `room` due jobs for a worker; none if there is nothing to take.

    The attempt counts from there.
    """
    aging, frontier = settings.AGING, appetite.frontier
    if room <= 0 or not _looked(session, frontier):
        return []
    parameters = {
        "worker": appetite.worker_id,
        "room": room,
        "step": aging.step,
        "decrement": aging.decrement,
        "thresholds": list(aging.thresholds),
    }
    return [("claim", parameters | frontier.as_arrays())]


def read_claim(appetite: Appetite, room: int, rows: Sequence[Row]) -> Claimed:
    """Return what was taken, given the rows of the fetch."""
    *_, seen, passed_over = rows[0]
    claims = [] if rows[0][0] is None else [Claim._make(row[:-2]) for row in rows]
    if not passed_over:
        appetite.frontier.advance(claims)
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
