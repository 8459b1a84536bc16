"""What the end of a job means for those that wait for it.

A job that failed or was cancelled takes with it what waits for it with `on_failure="cancel"`, and so on downwards:
the first `_ROOM` in the transaction that ended it. Those are written down as unsettled in the same transaction, so
that neither a crash nor a graph of ten thousand leaves anybody waiting: whoever sees an unsettled job tells its
dependants, batch by batch, each in a transaction of its own.
"""

import uuid
from collections.abc import Sequence

from jobs.conf import settings
from jobs.pipeline import Row
from jobs.queries import Fetch, Session
from jobs.signals import Change
from jobs.states import EventKind, Status

_ROOM = 1000  # jobs that one statement cancels at most
_CANCELLED: str = Status.CANCELLED.value


def settling(ids: Sequence[uuid.UUID]) -> Fetch:
    """Release what waits for those of these jobs that are final; in the transaction that made them so, and after it."""
    return "settle", {"ids": list(ids), "horizon": settings.horizon}


def cascading(ids: Sequence[uuid.UUID]) -> Fetch:
    """Cancel what waits for those of these jobs that failed or were cancelled; where `settling` may stand as well."""
    return "cascade", {"ids": list(ids), "room": _ROOM}


def read_cascade(rows: Sequence[Row]) -> list[Change]:
    """Return what was cancelled, given the rows of `cascading`."""
    return [
        Change(id_, _CANCELLED, EventKind.CANCELLED, attempt, type_, queue, f"Cancelled because of job {root}.")
        for id_, type_, queue, attempt, root in rows
    ]


def settle_some(session: Session) -> tuple[int, list[Change]]:
    """Tell the dependants of some unsettled jobs, in one transaction; return of how many, and what was cancelled."""
    with session.transaction():
        ids = [job_id for (job_id,) in session.fetch("take_unsettled", room=_ROOM)]
        if not ids:
            return 0, []
        session.fetch("lock_parents", ids=ids)  # none of them is retried meanwhile
        _, rows = session.fetch_together([settling(ids), cascading(ids)])
    return len(ids), read_cascade(rows)


def settle_rest(session: Session) -> list[Change]:
    """Tell the dependants of every unsettled job that nobody else is busy with; returns what was cancelled."""
    changes: list[Change] = []
    while True:
        count, cancelled = settle_some(session)
        changes += cancelled
        if not count:
            return changes
