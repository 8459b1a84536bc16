"""How a worker says that it is alive: a lease on the database clock, renewed by heartbeat."""

import json
import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from jobs.conf import settings
from jobs.lifecycle.frontier import Level
from jobs.queries import Session


@dataclass(slots=True)
class Presence:
    """What a worker tells of itself. Its id belongs to one process start and is never used again."""

    worker_id: uuid.UUID
    name: str
    concurrency: int
    queues: Sequence[str] | None
    types: Sequence[str]
    listening: bool = False
    stopping: bool = False


def beat(session: Session, presence: Presence) -> None:
    """Renew the lease for another `LEASE` seconds."""
    session.fetch(
        "beat",
        worker=presence.worker_id,
        name=presence.name[:200],
        queues=None if presence.queues is None else json.dumps(list(presence.queues)),
        types=json.dumps(list(presence.types)),
        concurrency=presence.concurrency,
        listening=presence.listening,
        stopping=presence.stopping,
        lease=settings.LEASE,
    )


def saturate(session: Session, worker_id: uuid.UUID, levels: Collection[Level]) -> None:
    """Say for which queues and priorities a worker needs no word of jobs that are due now: older ones wait for it."""
    queues, priorities = [queue for queue, _ in levels], [priority for _, priority in levels]
    session.fetch("saturate", worker=worker_id, queues=queues, priorities=priorities)


def leave(session: Session, worker_id: uuid.UUID) -> None:
    """Remove a worker that stops in order, and rows of workers that have been gone for a day."""
    session.fetch("forget_workers", worker=worker_id)
