"""How jobs are taken back from a worker that was lost: a sweep that repeats until nothing is overdue.

The attempt counted at its claim, so a job that kills its machine runs out of attempts like any other that fails.
"""

import uuid
from collections import defaultdict

from jobs.claims import Claim, Ended
from jobs.conf import settings
from jobs.lifecycle.recording import record
from jobs.outcomes import Failed
from jobs.queries import Session
from jobs.signals import Change

_BATCH = 200
_REASON = "Worker {worker} was lost while it ran this job: nothing was heard of it for {lease:g} s."


def rescue(session: Session) -> list[Change]:
    """Take back every job whose worker's lease has run out; returns what was written.

    Does nothing while another process sweeps.
    """
    changes: list[Change] = []
    while True:
        batch = _rescue_batch(session)
        changes += batch
        if len(batch) < _BATCH:
            return changes


def _rescue_batch(session: Session) -> list[Change]:
    with session.transaction():
        if not session.fetch("try_sweep", sweep="rescue")[0][0]:
            return []
        lost: defaultdict[uuid.UUID, list[Ended]] = defaultdict(list)
        for row in session.fetch("lock_lost", lease=settings.LEASE, room=_BATCH):
            worker_id, *claim = row
            reason = _REASON.format(worker=worker_id, lease=settings.LEASE)
            lost[worker_id].append(Ended(Claim(*claim), Failed(reason, lost=True)))
        return [change for worker_id, ended in lost.items() for change in record(session, worker_id, ended).changes]
