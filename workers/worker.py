"""One worker process: the loop that claims jobs, has them run, and hands in how they ended.

The loop owns the timing wheel and the claims; the pool runs handlers; a thread each listens, beats and broadcasts. It
writes nothing itself: `jobs.lifecycle` does. Its waits are on the monotonic clock; what is due, the database decides.
"""

import logging
import os
import socket
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import psycopg

from jobs import lifecycle
from jobs.claims import Claim
from jobs.conf import settings
from jobs.errors import DatabaseAway
from jobs.lifecycle import Appetite, Presence
from jobs.queries import WorkerSession
from jobs.registry import registry
from jobs.signals import ByWorker, announce
from scheduling import TimingWheel
from workers.ahead import ClaimAhead
from workers.broadcast import Broadcaster
from workers.duties import Duties
from workers.ears import Ears
from workers.exchanges import Answer, Exchanges
from workers.heartbeat import Heartbeat
from workers.hunger import Hunger
from workers.pool import SOON, Pool
from workers.reports import Reports
from workers.unreported import Unreported
from workers.wakeup import Wakeup

logger = logging.getLogger("dilamme.worker")

_TICK = 0.00025  # seconds; on average a timer is late by half of it
_LONGEST_SLEEP = 60.0  # seconds
_BATCHES_AHEAD = 3  # to claim at most: one that runs, one under way, one that waits
_LAST_WORDS = 5.0  # seconds a stopping worker tries to report what it has, when the database is away


@dataclass(frozen=True, slots=True)
class Plan:
    """How one worker process is to work."""

    queues: Sequence[str] | None = None  # None for all
    concurrency: int = 10
    grace: float = 30.0  # seconds
    drain: bool = False  # end once nothing is due


class Worker:
    """Runs jobs until it is stopped."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._wakeup = Wakeup()
        self._wheel: TimingWheel[object, Callable[[], None]] = TimingWheel(start=time.monotonic(), tick=_TICK)
        self._reports = Reports(worker_id := uuid.uuid4())
        self._pool = Pool(plan.concurrency, settings.AGING, self._wakeup, self._reports)
        self._ahead = ClaimAhead(plan.concurrency, _BATCHES_AHEAD * settings.CLAIM_BATCH)
        self._session = WorkerSession()
        self._presence = Presence(
            worker_id=worker_id,
            name=f"{socket.gethostname()}:{os.getpid()}",
            concurrency=plan.concurrency,
            queues=plan.queues,
            types=sorted(kind.name for kind in registry),
        )
        self._appetite = Appetite(self.worker_id, plan.queues)
        self._hunger = Hunger()
        self._ears = Ears(plan.queues, self._wakeup)
        self._heartbeat = Heartbeat(self._presence)
        self._broadcaster = Broadcaster()
        self._duties = Duties(
            wheel=self._wheel,
            session=self._session,
            pool=self._pool,
            ahead=self._ahead,
            ears=self._ears,
            presence=self._presence,
            appetite=self._appetite,
            hunger=self._hunger,
        )
        self._unreported = Unreported(self.worker_id)
        self._exchanges = Exchanges(self._session, self._appetite, self._unreported, self._come_again, self._adopt)
        self._stop_requests = 0

    @property
    def worker_id(self) -> uuid.UUID:
        """The identity of this process start."""
        return self._presence.worker_id

    def stop(self) -> None:
        """Ask the worker to stop; asked again, it does not wait for running handlers. Safe in a signal handler."""
        self._stop_requests += 1
        self._wakeup.set()

    def run(self) -> int:
        """Work until stopped, or with `drain` until nothing is due; returns 0, or 1 if an outcome stayed unreported."""
        for thread in (self._heartbeat, self._broadcaster, self._ears):
            thread.start()
        self._duties.begin()
        try:
            while not self._is_done():
                self._turn()
        except Exception:
            logger.exception("The worker's loop failed; handing back what it holds.")
            self._stop_requests = 2
            self._finish()
            return 1
        return self._finish()

    def _turn(self) -> None:
        self._advance_timers()
        self._heed()
        self._exchange()
        self._pool.fill(self._ahead.typical)
        self._duties.watch_timeouts()
        self._sleep()

    def _is_done(self) -> bool:
        if self._stop_requests:
            return True
        return self._plan.drain and not (
            self._hunger.is_felt or self._pool.held or self._pool.outcomes or self._unreported or self._exchanges
        )

    def _advance_timers(self) -> None:
        for _, action in self._wheel.advance(time.monotonic()):
            action()

    def _heed(self) -> None:
        """Act on what was heard since the last turn."""
        heard, frontier = self._ears.take(), self._appetite.frontier
        for level, since in heard.levels.items():
            frontier.lower(level, since)
        if heard.missed:
            frontier.doubt()
        if heard.missed or heard.due:
            self._hunger.feel()
        if heard.missed or heard.later:
            self._duties.look_ahead_soon()
        if heard.controls:
            self._appetite.controls.doubt()
            frontier.doubt()
            self._hunger.feel()
        if heard.series:
            self._duties.tick_soon()
        for job_id in heard.cancelled:
            self._pool.cancel(job_id)
        self._exchanges.note_cancelled(heard.cancelled)

    def _exchange(self) -> None:
        """Send what ended and a claim of what fits, and take in the answer to what was sent before."""
        self._collect()
        if self._may_send():
            self._send()
        if (answer := self._exchanges.receive(self._may_send)) is not None:
            self._digest(answer)

    def _may_send(self) -> bool:
        return self._exchanges.may_send(self._pool.outcomes)

    def _collect(self) -> None:
        collected = self._pool.collect()
        self._duties.forget_timeouts(collected)
        self._exchanges.report(collected)
        limited = self._appetite.controls.limited
        if limited and any(end.claim.queue in limited for end in collected):
            self._hunger.feel()  # what ended makes room for another of its queue

    def _send(self) -> None:
        """Hand in what ended, take what fits: one transaction."""
        room = self._room()
        if (self._unreported.waiting or room) and self._exchanges.send(room) and room:
            self._hunger.note_asked()

    def _digest(self, answer: Answer) -> None:
        """Take in what came of an exchange."""
        result = answer.exchanged
        self._ahead.observe(answer.ended)
        self._take_in(result.claimed.claims)
        for job_id in answer.unwanted:
            self._pool.cancel(job_id)
        if result.claimed.room:
            self._note_claim(result.claimed)
        elif answer.asked:
            self._hunger.feel()  # the claim was undone with outcomes that the database refused
        self._tell(result)

    def _room(self) -> int:
        """How many jobs to ask for: none while nothing is known to be due, or while the reserve is half full."""
        if not self._hunger.is_felt or self._stop_requests:
            return 0
        reserve = self._ahead.size
        if reserve and self._pool.waiting > reserve // 2:
            return 0
        free = self._plan.concurrency + reserve - self._pool.held - self._exchanges.room
        return self._hunger.portion(free)

    def _take_in(self, claims: Sequence[Claim]) -> None:
        if claims:
            self._pool.push(claims, now=claims[-1].claimed_at)

    def _tell(self, result: lifecycle.Exchanged) -> None:
        """Say what happened, after the commit."""
        for lost in result.recorded.lost:
            logger.warning(
                "Attempt %s of %s %s ended, but its claim was no longer ours: nothing was written about it.",
                lost.claim.attempt, lost.claim.type, lost.claim.id,
            )  # fmt: skip
        if result.recorded.has_pending:
            self._duties.look_ahead_soon()
            self._appetite.frontier.doubt()  # a hand-back keeps its age
            self._hunger.feel()  # and a short delay may be over before anybody looks ahead
        if result.recorded.has_unsettled:
            self._duties.settle_soon()
        announce(ByWorker, result.recorded.changes)

    def _come_again(self, moment: float) -> None:
        """Claim again once the database may be back."""
        self._wheel.insert("retry the exchange", moment, self._hunger.feel)

    def _adopt(self, claims: Sequence[Claim]) -> None:
        """Take in what is ours by the database's word, unless it is at work here."""
        self._take_in([claim for claim in claims if not self._pool.holds(claim)])

    def _note_claim(self, claimed: lifecycle.Claimed) -> None:
        """Decide when to claim again."""
        now = time.monotonic()
        for name, seconds in (("look again", self._hunger.note_answer(claimed)), ("rate", claimed.wait)):
            if seconds is not None:
                self._wheel.insert(name, now + seconds, self._hunger.feel)
        if not self._hunger.backlog:
            self._duties.tell_backlog()  # that it is over, if there was one
        if (moment := self._appetite.controls.reopens_at) is not None:
            self._wheel.insert("end of a pause", moment, self._hunger.feel)

    def _sleep(self) -> None:
        """Wait for an outcome, a notification, a signal, or time; not at all for an answer, or while there is more."""
        now = time.monotonic()
        if self._exchanges or (now >= self._exchanges.retry_at and self._room()):
            return
        due = self._wheel.next_expiry()
        longest = SOON if self._pool.holds_back else _LONGEST_SLEEP
        self._wakeup.wait(longest if due is None else min(due - now, longest))

    def _finish(self) -> int:
        """Stop in order: hand back what waits, let what runs end within the grace, hand back the rest, leave."""
        self._presence.stopping = True
        while self._exchanges:  # what they bring is handed back as well
            if (answer := self._exchanges.receive(lambda: False)) is not None:
                self._digest(answer)
        self._pool.hand_back_waiting("The worker was stopping before this job had started.")
        deadline = time.monotonic() + self._plan.grace
        while self._pool.running and self._stop_requests < 2 and time.monotonic() < deadline:
            self._wheel.insert("end of the grace", deadline, lambda: None)
            self._advance_timers()
            self._heed()
            self._exchange()
            self._duties.watch_timeouts()
            if self._pool.running:
                self._sleep()
        self._pool.hand_back_running("The worker stopped before the handler had finished.")
        everything_reported = self._report_the_rest()
        self._leave()
        return 0 if everything_reported else 1

    def _report_the_rest(self) -> bool:
        deadline = time.monotonic() + _LAST_WORDS
        while True:
            self._exchange()
            if not (self._unreported or self._pool.outcomes):
                return True
            if time.monotonic() > deadline:
                self._unreported.secure()
                fate = "the next worker here reports them" if self._unreported.are_on_disk else "their jobs are rescued"
                logger.error("%s outcomes could not be reported: %s.", len(self._unreported), fate)
                return False
            self._wakeup.wait(max(0.0, self._exchanges.retry_at - time.monotonic()))

    def _leave(self) -> None:
        for thread in (self._heartbeat, self._ears, self._broadcaster):
            thread.stop()
        for thread in (self._heartbeat, self._ears, self._broadcaster):
            thread.join(timeout=2)
        try:
            lifecycle.leave(self._session, self.worker_id)
        except (DatabaseAway, psycopg.Error) as error:
            logger.warning("The worker's row stays behind: %s", error)
        self._reports.stop()
        self._unreported.close()
        self._session.close()
        self._pool.close()
