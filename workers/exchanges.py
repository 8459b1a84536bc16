"""The exchanges of one worker with the database: sent without waiting, answered in order.

A second one goes out while the server is at the first, if there is enough to report: then the server turns from one to
the next without a pause, and what the worker does with the answer costs no time of its own. With less to report the
next waits, so that it grows.
"""

import logging
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import psycopg

from jobs import lifecycle
from jobs.claims import Claim, Ended
from jobs.errors import DatabaseAway
from jobs.lifecycle import Appetite, Exchange, Exchanged
from jobs.pipeline import Reply
from jobs.queries import WorkerSession
from workers.unreported import Unreported

logger = logging.getLogger("dilamme.worker")

_AT_MOST = 400  # outcomes in one: the statements look values up by position, which is quadratic, and dear from here on
_WORTH_IT = 100  # outcomes that another one beside the first is sent for
_UNDER_WAY = 2  # at once
_SLICE = 0.001  # seconds between two looks at what has ended meanwhile
_FIRST_RETRY, _LAST_RETRY = 0.05, 5.0  # seconds between exchanges while the database is away


@dataclass(slots=True)
class _Sent:
    """An exchange under way."""

    exchange: Exchange
    ended: list[Ended]
    reply: Reply
    unwanted: set[uuid.UUID] = field(default_factory=set)  # jobs that were cancelled since


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of an exchange, and the jobs among those it took that were cancelled before it was answered."""

    exchanged: Exchanged
    ended: list[Ended]
    asked: int  # how many jobs it asked for
    unwanted: set[uuid.UUID]


class Exchanges:
    """Sends and receives for a worker's loop. What a failed exchange had to report waits for the next one.

    `come_again` is told when to try again, on the monotonic clock, after the database was found away; `adopt` gets the
    claims that were committed while an earlier connection broke, before anybody heard of them.
    """

    def __init__(
        self,
        session: WorkerSession,
        appetite: Appetite,
        unreported: Unreported,
        come_again: Callable[[float], None],
        adopt: Callable[[Sequence[Claim]], None],
    ) -> None:
        self._session = session
        self._appetite = appetite
        self._unreported = unreported
        self._come_again = come_again
        self._adopt = adopt
        self._sent: deque[_Sent] = deque()
        self._failures = 0  # in a row
        self._retry_at = 0.0

    def __len__(self) -> int:
        return len(self._sent)

    @property
    def room(self) -> int:
        """How many jobs those under way may bring."""
        return sum(sent.exchange.room for sent in self._sent)

    @property
    def retry_at(self) -> float:
        """When the next may be sent, on the monotonic clock; in the past if the latest did not fail."""
        return self._retry_at

    def may_send(self, ended: int) -> bool:
        """Whether to send one now, with so many outcomes that were not taken in yet."""
        if not self._sent:
            return time.monotonic() >= self._retry_at
        return len(self._sent) < _UNDER_WAY and self._unreported.waiting + ended >= _WORTH_IT

    def report(self, ended: Sequence[Ended]) -> None:
        """Take in how runs have ended."""
        self._unreported.add(ended)
        if ended and self._failures:
            self._unreported.secure()

    def note_cancelled(self, job_ids: Iterable[uuid.UUID]) -> None:
        """Take in that somebody does not want these; exchanges under way may bring them."""
        if self._sent:
            self._sent[-1].unwanted.update(job_ids)

    def send(self, room: int) -> bool:
        """Report the oldest outcomes and ask for so many jobs; returns whether that is under way."""
        ended = self._unreported.take(_AT_MOST)
        try:
            if self._session.is_new:
                self._look_for_own()
            exchange = Exchange(self._session, self._appetite, ended, room)
            self._sent.append(_Sent(exchange, ended, self._session.send(exchange.fetches)))
        except Exception as error:  # noqa: BLE001  what time does not heal is raised again
            self._unreported.put_back(ended)
            self._note_failure(error)
            return False
        return True

    def _look_for_own(self) -> None:
        known = {(end.claim.id, end.claim.attempt) for end in self._unreported}
        held = lifecycle.held(self._session, self._appetite.worker_id)
        self._adopt([claim for claim in held if (claim.id, claim.attempt) not in known])
        self._session.is_new = False

    def receive(self, may_send: Callable[[], bool]) -> Answer | None:
        """Wait for the oldest; None if another may be sent before it is answered, or if it failed."""
        if not self._sent:
            return None
        oldest = self._sent[0]
        try:
            while not self._session.is_answered(oldest.reply, _SLICE):
                if may_send():
                    return None
            exchanged = oldest.exchange.result(lambda: self._session.rows_of(oldest.reply))
        except Exception as error:  # noqa: BLE001  what time does not heal is raised again
            self._sent.popleft()
            self._unreported.put_back(oldest.ended)
            self._note_failure(error)
            return None
        self._sent.popleft()
        self._unreported.forget(oldest.ended)
        self._failures = 0
        return Answer(exchanged, oldest.ended, oldest.exchange.room, oldest.unwanted)

    def _note_failure(self, error: Exception) -> None:
        """Keep what ended, and come again later; an error that time does not heal is raised again."""
        self._unreported.secure()
        if not isinstance(error, (DatabaseAway, psycopg.OperationalError)):
            raise error
        delay = min(_FIRST_RETRY * 2**self._failures, _LAST_RETRY)
        self._failures = min(self._failures + 1, 20)
        self._retry_at = time.monotonic() + delay
        self._come_again(self._retry_at)
        logger.warning("Nothing could be exchanged with the database, trying again in %.2f s: %s", delay, error)
