"""The jobs a worker process holds: those that wait in the heap and those that run, and the threads that run them.

Sync handlers run in threads, isolated ones in child processes for which threads wait, async ones on one event loop;
together never more than `concurrency`. A thread that has finished takes the next job from the heap itself, so that the
loop is not needed between two short jobs. Nothing here knows the database: outcomes are collected by the loop.
"""

import math
import queue
import threading
import time
import uuid
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from jobs import insights
from jobs.claims import Claim, Ended
from jobs.context import Context, Reports
from jobs.outcomes import Cancelled, Failed, Outcome, Released
from jobs.registry import JobType, registry
from scheduling import Aging, ReadyHeap
from workers import connections, executor
from workers.async_lane import HANDLER_THREAD, AsyncLane
from workers.isolation import Children
from workers.wakeup import Wakeup

SOON = 0.002  # seconds within which a job should start once a slot is free
_KEEP_CONNECTIONS = 1.0  # seconds a thread waits for its next job before it closes its database connections


@dataclass(slots=True, eq=False)
class Run:
    """A claim that has been started."""

    claim: Claim
    kind: JobType | None
    context: Context
    started: float = field(default_factory=time.monotonic)
    timeout: float | None = None  # seconds
    is_isolated: bool = False  # whether its handler runs in a child process
    is_settled: bool = False  # its outcome has been given: whatever the handler still does counts for nothing


class Pool:
    """Starts what the heap says, and keeps the outcomes until they are collected. Safe to call from any thread."""

    def __init__(self, concurrency: int, aging: Aging, wakeup: Wakeup, reports: Reports | None = None) -> None:
        self._concurrency = concurrency
        self._wakeup = wakeup
        self._reports = reports
        self._lock = threading.Lock()
        self._heap: ReadyHeap[Claim] = ReadyHeap(aging)
        self._running: set[Run] = set()  # a job may be here twice: its claim was lost, and it was claimed again
        self._zombies = 0  # settled runs whose handler has not returned: their slot stays taken
        self._outcomes: deque[Ended] = deque()
        self._started: deque[Run] = deque()  # those with a timeout, for the loop to watch
        self._database_ahead = 0.0  # seconds from the monotonic clock to the database's
        self._starts = 0
        self._progress = (0, 0.0)  # starts, and when there were so many for the first time
        self._threads: list[threading.Thread] = []
        self._idle_threads = 0
        self._handed: queue.SimpleQueue[Run | None] = queue.SimpleQueue()
        self._lane = AsyncLane(self._async_ended)
        self._children = Children(reports)

    # What the loop does

    def push(self, claims: Iterable[Claim], now: float) -> None:
        """Take in what was claimed; `now` is the database's time, in seconds since 1970."""
        with self._lock:
            self._database_ahead = now - time.monotonic()
            self._heap.extend(claims, now)

    def fill(self, typical: float | None = None) -> None:
        """Start the most urgent jobs while there are free slots; `typical` is how long a handler takes, if known.

        To wake a thread and to pass it the interpreter takes longer than a short handler runs. So no more threads are
        woken than are needed to start all that wait within `SOON`; unless nothing has started for as long.
        """
        with self._lock:
            threads = self._concurrency
            if typical is not None and not self._is_stuck():
                threads = max(1, math.ceil(len(self._heap) * typical / SOON))
            while run := self._next(may_be_sync=self._busy_threads < threads):
                self._hand_to_thread(run)

    @property
    def holds_back(self) -> bool:
        """Whether jobs wait although slots are free: call `fill` again, within `SOON`."""
        return bool(self._heap) and len(self._running) + self._zombies < self._concurrency

    def collect(self) -> list[Ended]:
        """Return how runs have ended since the last call."""
        return [self._outcomes.popleft() for _ in range(len(self._outcomes))]

    def started(self) -> list[Run]:
        """Return the runs with a timeout that have started since the last call."""
        return [self._started.popleft() for _ in range(len(self._started))]

    @property
    def held(self) -> int:
        """How many jobs count against what may be claimed: waiting, running, and overdue ones that still run."""
        with self._lock:
            return len(self._heap) + len(self._running) + self._zombies

    @property
    def waiting(self) -> int:
        """How many were claimed and not started."""
        return len(self._heap)

    @property
    def running(self) -> int:
        """How many runs have no outcome yet."""
        return len(self._running)

    @property
    def outcomes(self) -> int:
        """How many runs have ended that were not collected."""
        return len(self._outcomes)

    @property
    def starts(self) -> int:
        """How many runs were ever started."""
        return self._starts

    def holds(self, claim: Claim) -> bool:
        """Whether this very attempt is waiting or running here, or waits to be collected."""
        with self._lock:
            running = any(run.claim.id == claim.id and run.claim.attempt == claim.attempt for run in self._running)
            collected = any(end.claim.id == claim.id and end.claim.attempt == claim.attempt for end in self._outcomes)
            return claim.id in self._heap or collected or running

    # What ends a job other than its handler

    def time_out(self, run: Run) -> None:
        """Give a run that is past its timeout its outcome; tell the handler, which may take a while to stop."""
        limit = f"{run.timeout:g} s that {run.claim.type} may take"
        self._settle(run, Failed(f"Timed out: it ran longer than the {limit}."))

    def cancel(self, job_id: uuid.UUID) -> None:
        """Pass on that somebody does not want this job any more; harmless if it is not here."""
        with self._lock:
            if (claim := self._heap.get(job_id)) is not None:
                self._heap.discard(job_id)
                self._outcomes.append(Ended(claim, Cancelled("Cancelled before it started.")))
            running = [run for run in self._running if run.claim.id == job_id]
        for run in running:
            run.context.stop()
        self._wakeup.set()

    def hand_back_waiting(self, reason: str) -> None:
        """Give up every job that was claimed and not started."""
        with self._lock:
            self._outcomes.extend(Ended(claim, Released(reason)) for claim in self._heap.drain())

    def hand_back_running(self, reason: str) -> None:
        """Give up every job that runs; what its handler still does is fenced off."""
        for run in list(self._running):
            self._settle(run, Released(reason))

    def report_blocked_loop(self) -> str:
        """Return what blocks the event loop, if anything does."""
        return self._lane.blocked_by()

    def close(self) -> None:
        """Stop idle threads and children, and the loop; handlers that never return are left to the process's end."""
        for _ in self._threads:
            self._handed.put(None)
        self._lane.close()
        for thread in self._threads:
            thread.join(timeout=0 if self._zombies else 5)
        self._children.close()

    # Starting and ending

    @property
    def _busy_threads(self) -> int:
        return len(self._threads) - self._idle_threads

    def _is_stuck(self) -> bool:
        """Whether nothing has started for a while: the few threads that were woken are all in long handlers."""
        now = time.monotonic()
        starts, since = self._progress
        if self._starts != starts or not self._running:
            self._progress = (self._starts, now)
            return False
        return now - since > SOON

    def _next(self, *, may_be_sync: bool = True) -> Run | None:
        """Start the head of the heap if a slot is free: an async one on its loop; a sync one is returned to be run."""
        while self._heap and len(self._running) + self._zombies < self._concurrency:
            kind = registry.find(self._heap.peek().type)
            if not may_be_sync and not (kind and kind.is_async):
                return None
            claim = self._heap.pop()
            if claim.expires_at is not None and self._has_expired(claim.expires_at, claim):
                self._outcomes.append(Ended(claim, Cancelled("It was not started in time.", expired=True)))
                continue
            run = self._begin(claim, kind)
            if kind is None or not kind.is_async:
                return run
            self._lane.start(run)
        return None

    def _has_expired(self, expires_at: float, claim: Claim) -> bool:
        """Whether the time to start a job for the first time is over."""
        is_first = claim.attempt - claim.attempts_refunded <= 1
        return is_first and expires_at <= time.monotonic() + self._database_ahead

    def _begin(self, claim: Claim, kind: JobType | None) -> Run:
        context = Context(claim, insights.parent_results, self._reports, insights.metadata_of)
        run = Run(claim, kind, context)
        if kind is not None:
            run.timeout = claim.timeout or kind.timeout
            run.is_isolated = kind.isolation == "process"
        self._running.add(run)
        self._starts += 1
        if run.timeout is not None and not run.is_isolated:
            self._started.append(run)
        return run

    def _hand_to_thread(self, run: Run) -> None:
        if self._idle_threads > 0:
            self._idle_threads -= 1
        else:
            thread = threading.Thread(target=self._work, name=f"{HANDLER_THREAD}-{len(self._threads)}", daemon=True)
            self._threads.append(thread)
            thread.start()
        self._handed.put(run)

    def _work(self) -> None:
        """Run sync handlers, one after the other, until told to end."""
        while (run := self._wait_for_run()) is not None:
            following: Run | None = run
            while following is not None:
                if following.is_isolated:
                    outcome = self._run_in_child(following)
                else:
                    outcome = executor.run(following.kind, following.claim, following.context)
                following = self._ended(following, outcome)
        connections.close_all()

    def _run_in_child(self, run: Run) -> Outcome:
        return self._children.run(run.claim, run.context, lambda: self._begun_in_child(run))

    def _begun_in_child(self, run: Run) -> None:
        """Count the time from now: to start a child takes a while, and is no part of the run."""
        run.started = time.monotonic()
        if run.timeout is not None:
            self._started.append(run)
            self._wakeup.set()

    def _wait_for_run(self) -> Run | None:
        try:
            return self._handed.get(timeout=_KEEP_CONNECTIONS)
        except queue.Empty:
            connections.close_all()
            return self._handed.get()

    def _ended(self, run: Run, outcome: Outcome) -> Run | None:
        """Note how a run ended, and return the next one for the same thread."""
        with self._lock:
            self._note(run, outcome)
            following = self._next()
            if following is None:
                self._idle_threads += 1
        self._wakeup.set()
        return following

    def _async_ended(self, run: Run, outcome: Outcome) -> None:
        with self._lock:
            self._note(run, outcome)
            if following := self._next():
                self._hand_to_thread(following)
        self._wakeup.set()

    def _note(self, run: Run, outcome: Outcome) -> None:
        if run.is_settled:
            self._zombies -= 1
            return
        run.is_settled = True
        self._running.remove(run)
        self._outcomes.append(Ended(run.claim, outcome, time.monotonic() - run.started))

    def _settle(self, run: Run, outcome: Outcome) -> None:
        """Give a run its outcome while its handler still runs."""
        with self._lock:
            if run.is_settled:
                return
            self._note(run, outcome)
            self._zombies += 1
        run.context.stop()
        if run.kind is not None and run.kind.is_async:
            self._lane.cancel(run)
        self._wakeup.set()
