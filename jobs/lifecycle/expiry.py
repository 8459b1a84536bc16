"""How jobs end that were not started in time: a sweep that repeats until nothing is overdue.

A worker that has claimed such a job cancels it itself, and says so as an outcome.
"""

from jobs.lifecycle.cascade import cascading, read_cascade, settling
from jobs.queries import Session
from jobs.signals import Change
from jobs.states import EventKind, Status

_BATCH = 500


def expire(session: Session) -> list[Change]:
    """Cancel every pending job whose time to be started is over, with what waits for it."""
    changes: list[Change] = []
    while True:
        batch = _expire_batch(session)
        changes += batch
        if len(batch) < _BATCH:
            return changes


def _expire_batch(session: Session) -> list[Change]:
    with session.transaction():
        rows = session.fetch("expire", room=_BATCH)
        if not rows:
            return []
        ids = [row[0] for row in rows]
        _, cascaded = session.fetch_together([settling(ids), cascading(ids)])
    expired = [
        Change(id_, Status.CANCELLED.value, EventKind.EXPIRED, attempt, type_, queue, "It was not started in time.")
        for id_, type_, queue, attempt in rows
    ]
    return expired + read_cascade(cascaded)
