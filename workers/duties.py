"""What a worker does by the clock: polling, looking ahead, sweeping, timeouts, and watching its own pool.

All of it hangs on the worker's timing wheel. A duty that finds the database away is skipped; its next turn comes.
"""

import functools
import logging
import random
import time
from collections.abc import Callable, Sequence
from typing import Any

import psycopg

from jobs import lifecycle, recurring
from jobs.claims import Ended
from jobs.conf import settings
from jobs.errors import DatabaseAway
from jobs.idempotency import prune_idempotency
from jobs.lifecycle import Appetite, Presence
from jobs.lifecycle.frontier import Level
from jobs.pipeline import Row
from jobs.queries import Session
from jobs.signals import ByWorker, announce
from jobs.spool.forwarder import forwarder
from scheduling import TimingWheel
from workers import unreported
from workers.ahead import ClaimAhead
from workers.ears import Ears
from workers.hunger import Hunger
from workers.pool import Pool

logger = logging.getLogger("dilamme.worker")

_POLL_WHEN_DEAF = 1.0  # seconds between polls at most while notifications do not arrive
_WATCH_INTERVAL = 1.0  # seconds between two looks at the pool
_UPCOMING = 500  # due times on the wheel at once
_DUE_TIMES = 4000  # in a second at most: those of jobs that are closer together are one
_FIRST_TICK = 1.0  # seconds after the start: what waits in the queues goes first
_TICK_AGAIN = 0.25  # seconds, while another process looks at the series
_LOOK_FOR_UNTOLD = (0.0, 0.05, 0.5)  # seconds after a backlog; who enqueued meanwhile has committed long before
_COALESCE = 0.005  # seconds within which calls to look ahead are one


class Duties:
    """The recurring work of one worker; every method runs on the loop's thread."""

    def __init__(
        self,
        *,
        wheel: "TimingWheel[object, Callable[[], None]]",
        session: Session,
        pool: Pool,
        ahead: ClaimAhead,
        ears: Ears,
        presence: Presence,
        appetite: Appetite,
        hunger: Hunger,
    ) -> None:
        self._wheel = wheel
        self._session = session
        self._pool = pool
        self._ahead = ahead
        self._ears = ears
        self._presence = presence
        self._appetite = appetite
        self._hunger = hunger
        self._work_is_due = hunger.feel
        self._saturated: frozenset[Level] = frozenset()  # as the database knows it
        self._starts_seen = 0
        self._retention = lifecycle.Retention()
        self._are_series_stale = True  # whether what the code declares has not been written yet
        self._has_timeouts = False  # whether any run of this process ever had one

    def begin(self) -> None:
        """Hang the duties on the wheel."""
        now = time.monotonic()
        self._wheel.insert("poll", now + settings.POLL_INTERVAL, self._poll)
        self._wheel.insert("watch", now + _WATCH_INTERVAL, self._watch)
        self._wheel.insert("adopt", now, self._adopt)
        self._wheel.insert("sweep", now + settings.SWEEP_INTERVAL * random.random(), self._sweep)  # noqa: S311  spreads them
        self._wheel.insert("series", now + _FIRST_TICK, self._tick)
        self.look_ahead_soon()

    def look_ahead_soon(self) -> None:
        """Have the next due times loaded, and what falls due before that claimed; calls in quick succession are one."""
        if "look ahead" not in self._wheel:
            self._wheel.insert("look ahead", time.monotonic() + _COALESCE, self._look_again)

    def tick_soon(self) -> None:
        """Have the series looked at."""
        self._wheel.insert("series", time.monotonic(), self._tick)

    def _tick(self) -> None:
        """Make the jobs of the slots that are due, or leave it to the process that is at it; then wait for the next."""
        wait: float = settings.SWEEP_INTERVAL
        try:
            if self._are_series_stale:
                recurring.sync_declared(self._session)
                self._are_series_stale = False
            if recurring.tick(self._session) is None:
                wait = _TICK_AGAIN
            elif (seconds := recurring.seconds_to_next(self._session)) is not None:
                wait = min(wait, max(0.0, seconds))
        except (DatabaseAway, psycopg.Error) as error:
            logger.warning("The series could not be looked at, the next tick follows: %s", error)
        self._wheel.insert("series", time.monotonic() + wait, self._tick)

    def settle_soon(self) -> None:
        """Have the dependants told of what was cancelled with its parents."""
        self._wheel.insert("settle", time.monotonic(), self._settle)

    def _settle(self) -> None:
        try:
            announce(ByWorker, lifecycle.settle_rest(self._session))
        except (DatabaseAway, psycopg.Error) as error:
            logger.warning("Dependants could not be told, the next sweep tells them: %s", error)

    def _look_anew(self) -> None:
        """Jobs went back to the queue, perhaps to one that had none: see where they are, and when they are due."""
        self._appetite.frontier.doubt()
        self.look_ahead_soon()

    def watch_timeouts(self) -> None:
        """Put the timeouts of runs that have just started on the wheel."""
        for run in self._pool.started():
            if run.timeout is not None:
                self._has_timeouts = True
                key = ("timeout", run.claim.id, run.claim.attempt)
                self._wheel.insert(key, run.started + run.timeout, functools.partial(self._pool.time_out, run))

    def forget_timeouts(self, ended: Sequence[Ended]) -> None:
        """Take the timeouts of runs that have ended off the wheel."""
        for end in ended if self._has_timeouts else ():
            self._wheel.cancel(("timeout", end.claim.id, end.claim.attempt))

    def _poll(self) -> None:
        """Look for what no notification told of."""
        self._presence.listening = self._ears.is_open
        interval = settings.POLL_INTERVAL if self._ears.is_open else min(settings.POLL_INTERVAL, _POLL_WHEN_DEAF)
        self._wheel.insert("poll", time.monotonic() + interval, self._poll)
        self._appetite.frontier.doubt()
        self._appetite.controls.doubt()
        self._work_is_due()
        self._look_ahead()
        if self._pool.running:
            for (job_id,) in self._ask("asked_to_stop", worker=self._presence.worker_id):
                self._pool.cancel(job_id)

    def _look_ahead(self) -> None:
        """Put the next due times on the wheel, so that a job starts at its time and nobody polls hard for it."""
        try:
            waits = lifecycle.upcoming(self._session, self._appetite, _UPCOMING)
        except (DatabaseAway, psycopg.Error) as error:
            logger.warning("The worker could not look ahead: %s", error)
            return
        if (moment := self._appetite.frontier.postponed_until) is not None:
            self._wheel.insert("postponed look", moment, self._look_again)
        now = time.monotonic()
        for seconds in waits:
            due = now + max(0.0, seconds)
            self._wheel.insert(("due", int(due * _DUE_TIMES)), due, self._work_is_due)
        if len(waits) == _UPCOMING:
            self._wheel.insert("look ahead", now + max(0.0, waits[-1]), self._look_ahead)

    def _look_again(self) -> None:
        """Find what will be due, and claim what has fallen due since somebody claimed."""
        self._work_is_due()
        self._look_ahead()

    def _adopt(self) -> None:
        """Report and forward what processes that are gone have left in the spool of this machine."""
        forwarder.attend()
        try:
            for recorded in unreported.adopt(self._session):
                announce(ByWorker, recorded.changes)
                self._look_anew()
        except (DatabaseAway, psycopg.Error) as error:
            logger.warning("Outcomes of earlier workers wait in the spool: %s", error)

    def _sweep(self) -> None:
        """Take jobs back from workers that were lost; what they have left behind on this machine goes first."""
        self._wheel.insert("sweep", time.monotonic() + settings.SWEEP_INTERVAL, self._sweep)
        self._adopt()
        try:
            changes = lifecycle.rescue(self._session)
        except (DatabaseAway, psycopg.Error) as error:
            logger.warning("The sweep for lost workers failed, the next one follows: %s", error)
            return
        announce(ByWorker, changes)
        self._expire()
        self._settle()
        if changes:
            self._look_anew()

    def _expire(self) -> None:
        try:
            announce(ByWorker, lifecycle.expire(self._session))
            self._retention.prune(self._session)
            prune_idempotency(self._session)
        except (DatabaseAway, psycopg.Error) as error:
            logger.warning("The sweep for jobs that were not started in time failed: %s", error)

    def _watch(self) -> None:
        """Give back what was claimed ahead and does not get its turn; say where jobs wait, and what blocks the loop."""
        self._wheel.insert("watch", time.monotonic() + _WATCH_INTERVAL, self._watch)
        if self._pool.waiting and self._pool.starts == self._starts_seen:
            self._ahead.forget()
            self._pool.hand_back_waiting("Claimed ahead, but every slot stayed busy.")
        self._starts_seen = self._pool.starts
        self.tell_backlog()
        if self._saturated:
            self._appetite.frontier.doubt()  # nobody tells of a row that committed late
        if blocked := self._pool.report_blocked_loop():
            logger.warning("The event loop is blocked %s. Async handlers must await, or be sync.", blocked)

    def tell_backlog(self) -> None:
        """Let those who enqueue know where a word from them would change nothing."""
        backlog, now = self._hunger.backlog, time.monotonic()
        if backlog == self._saturated:
            return
        try:
            lifecycle.saturate(self._session, self._presence.worker_id, backlog)
        except (DatabaseAway, psycopg.Error) as error:
            logger.warning("The backlog could not be written down, the next second sees to it: %s", error)
            return
        for delay in _LOOK_FOR_UNTOLD if self._saturated - backlog else ():
            self._wheel.insert(("untold", delay), now + delay, self._look_for_untold)
        self._saturated = backlog

    def _look_for_untold(self) -> None:
        """Claim what was made without a word by somebody who took this worker for busy."""
        self._appetite.frontier.doubt()
        self._work_is_due()

    def _ask(self, statement: str, **parameters: Any) -> list[Row]:
        try:
            return self._session.fetch(statement, **parameters)
        except (DatabaseAway, psycopg.Error) as error:
            logger.warning("The worker could not look for %s: %s", statement.replace("_", " "), error)
            return []
