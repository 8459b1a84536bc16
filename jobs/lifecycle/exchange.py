"""What a worker does each turn: hand in what ended, take what fits, in one transaction and one round trip.

While one exchange is on its way to the database the next outcomes pile up, so the batch grows with the load by itself.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

import psycopg

from jobs.claims import Ended
from jobs.lifecycle.claiming import Appetite, Claimed, claim_of, read_claims
from jobs.lifecycle.recording import Record, Recorded
from jobs.outcomes import Failed
from jobs.queries import Session

logger = logging.getLogger("dilamme.lifecycle")


@dataclass(slots=True)
class Exchanged:
    """What came of one exchange."""

    claimed: Claimed = field(default_factory=Claimed)
    recorded: Recorded = field(default_factory=Recorded)


def exchange(session: Session, appetite: Appetite, ended: Sequence[Ended], room: int) -> Exchanged:
    """Record `ended` and claim up to `room` jobs.

    Raises `DatabaseAway` or psycopg.OperationalError (a deadlock, a lock timeout) with nothing written: the caller
    keeps what ended and comes again. An outcome that PostgreSQL refuses is recorded as a failure and holds up no other.
    """
    try:
        return _exchange(session, appetite, ended, room)
    except (psycopg.DataError, psycopg.IntegrityError, psycopg.ProgrammingError) as error:
        if not ended:
            raise
        logger.warning("A batch of %s outcomes was refused (%s); recording them one by one.", len(ended), error)
        return _one_by_one(session, appetite, ended)


def _exchange(session: Session, appetite: Appetite, ended: Sequence[Ended], room: int) -> Exchanged:
    written = Record(appetite.worker_id, ended)
    claim = claim_of(session, appetite, room)
    fetches = [*written.fetches, *claim]
    answers = session.fetch_together(fetches) if fetches else []
    count = len(written.fetches)
    claimed = read_claims(appetite, room, claim, answers[count:])
    return Exchanged(claimed, written.read(answers[:count]))


def _one_by_one(session: Session, appetite: Appetite, ended: Sequence[Ended]) -> Exchanged:
    result = Exchanged()
    for end in ended:
        try:
            single = _exchange(session, appetite, [end], 0)
        except (psycopg.DataError, psycopg.IntegrityError, psycopg.ProgrammingError) as error:
            refusal = Failed(f"The outcome of this run could not be stored: {error}")
            single = _exchange(session, appetite, [end._replace(outcome=refusal)], 0)
        result.recorded.changes += single.recorded.changes
        result.recorded.lost += single.recorded.lost
        result.recorded.has_pending |= single.recorded.has_pending
        result.recorded.has_unsettled |= single.recorded.has_unsettled
    return result
