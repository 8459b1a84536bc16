"""What a worker does each turn: hand in what ended, take what fits, in one transaction and one round trip.

While one exchange is on its way to the database the next outcomes pile up, so the batch grows with the load by itself.
An `Exchange` can be sent before the one ahead of it is answered.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import psycopg

from jobs.claims import Ended
from jobs.lifecycle.claiming import Appetite, Claimed, claim_of, read_claims
from jobs.lifecycle.recording import Record, Recorded, record
from jobs.outcomes import Failed
from jobs.pipeline import Row
from jobs.queries import Fetch, Session

logger = logging.getLogger("dilamme.lifecycle")

_REFUSED = (psycopg.DataError, psycopg.IntegrityError, psycopg.ProgrammingError)


@dataclass(slots=True)
class Exchanged:
    """What came of one exchange."""

    claimed: Claimed = field(default_factory=Claimed)
    recorded: Recorded = field(default_factory=Recorded)


class Exchange:
    """One exchange: what ended, and a claim of up to `room` jobs. Have `fetches` run together, then `read` the answers.

    Made with a session, which is asked where jobs begin if that is not known.
    """

    def __init__(self, session: Session, appetite: Appetite, ended: Sequence[Ended], room: int) -> None:
        self.ended = ended
        self.room = room
        self._session = session
        self._appetite = appetite
        self._written = Record(appetite.worker_id, ended)
        self._claim = claim_of(session, appetite, room)
        self._moves = appetite.frontier.moves
        self.fetches: list[Fetch] = [*self._written.fetches, *self._claim]

    def read(self, answers: Sequence[Sequence[Row]]) -> Exchanged:
        """Return what came of it, given the rows of each fetch."""
        count = len(self._written.fetches)
        claimed = read_claims(self._appetite, self.room, self._claim, answers[count:], self._moves)
        return Exchanged(claimed, self._written.read(answers[:count]))

    def result(self, wait: Callable[[], Sequence[Sequence[Row]]]) -> Exchanged:
        """Return what came of it, given what waits for the rows.

        Raises `DatabaseAway` or psycopg.OperationalError (a deadlock, a lock timeout) with nothing written: the caller
        keeps what ended and comes again. An outcome that PostgreSQL refuses is recorded as a failure and holds up no
        other.
        """
        try:
            return self.read(wait())
        except _REFUSED as error:
            if not self.ended:
                raise
            logger.warning("A batch of %s outcomes was refused (%s); they go one by one.", len(self.ended), error)
            return _one_by_one(self._session, self._appetite, self.ended)


def exchange(session: Session, appetite: Appetite, ended: Sequence[Ended], room: int) -> Exchanged:
    """Record `ended` and claim up to `room` jobs, and wait for it; raises what `Exchange.result` does."""
    one = Exchange(session, appetite, ended, room)
    return one.result(lambda: _run(session, one))


def _run(session: Session, one: Exchange) -> Sequence[Sequence[Row]]:
    return session.fetch_together(one.fetches) if one.fetches else []


def _one_by_one(session: Session, appetite: Appetite, ended: Sequence[Ended]) -> Exchanged:
    result = Exchanged()
    for end in ended:
        try:
            recorded = record(session, appetite.worker_id, [end])
        except _REFUSED as error:
            refusal = Failed(f"The outcome of this run could not be stored: {error}")
            recorded = record(session, appetite.worker_id, [end._replace(outcome=refusal)])
        result.recorded.changes += recorded.changes
        result.recorded.lost += recorded.lost
        result.recorded.has_pending |= recorded.has_pending
        result.recorded.has_unsettled |= recorded.has_unsettled
    return result
