"""How jobs are taken: in one statement, most urgent first, without waiting for what others have locked."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field

from jobs.claims import Claim
from jobs.conf import settings
from jobs.queries import Session


@dataclass(frozen=True, slots=True)
class Appetite:
    """Who claims, and from where."""

    worker_id: uuid.UUID
    queues: Sequence[str] | None = None  # None for every queue


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


def claim(session: Session, appetite: Appetite, room: int) -> Claimed:
    """Take up to `room` due jobs for a worker; the attempt counts from here."""
    aging = settings.AGING
    rows = session.fetch(
        "claim",
        worker=appetite.worker_id,
        queues=None if appetite.queues is None else list(appetite.queues),
        room=room,
        step=aging.step,
        decrement=aging.decrement,
        thresholds=list(aging.thresholds),
    )
    claims = [Claim(*row) for _, *row in rows if row[0] is not None]
    return Claimed(claims, seen=rows[0][0], room=room)


def held(session: Session, worker_id: uuid.UUID) -> list[Claim]:
    """Return what the database says this worker holds.

    After a connection broke during a commit a worker may own jobs it never heard of; nobody else would run them while
    its lease stands.
    """
    return [Claim(*row) for row in session.fetch("held", worker=worker_id)]
