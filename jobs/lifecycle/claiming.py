"""How jobs are taken: in one statement, most urgent first, without waiting for what others have locked."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from jobs.claims import Claim
from jobs.conf import settings
from jobs.queries import Session


@dataclass(frozen=True, slots=True)
class Appetite:
    """Who claims, and from where."""

    worker_id: uuid.UUID
    queues: Sequence[str] | None = None  # None for every queue


def claim(session: Session, appetite: Appetite, room: int) -> list[Claim]:
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
    return [Claim(*row) for row in rows]


def held(session: Session, worker_id: uuid.UUID) -> list[Claim]:
    """Return what the database says this worker holds.

    After a connection broke during a commit a worker may own jobs it never heard of; nobody else would run them while
    its lease stands.
    """
    return [Claim(*row) for row in session.fetch("held", worker=worker_id)]
