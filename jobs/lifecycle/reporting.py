"""What running handlers say: how far they are, and lines for the history. It changes no status."""

import uuid
from collections.abc import Sequence
from typing import NamedTuple

from jobs.queries import Session


class Progress(NamedTuple):
    """How far one attempt is: JSON of done, total and message."""

    job_id: uuid.UUID
    attempt: int
    text: str


class Line(NamedTuple):
    """A line of one attempt, storable, and how many seconds ago it was said."""

    job_id: uuid.UUID
    attempt: int
    age: float
    text: str


def report(session: Session, worker_id: uuid.UUID, progress: Sequence[Progress], lines: Sequence[Line]) -> None:
    """Keep the latest progress of each attempt (one for each job), and the lines in the order given."""
    session.fetch(
        "report",
        worker=worker_id,
        ids=[each.job_id for each in progress],
        attempts=[each.attempt for each in progress],
        progress=[each.text for each in progress],
        of=[line.job_id for line in lines],
        ages=[line.age for line in lines],
        lines=[line.text for line in lines],
        **{"in": [line.attempt for line in lines]},
    )
