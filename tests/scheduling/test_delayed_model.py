"""The delayed scheduler, with crashes, against a dictionary."""

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from scheduling import Backoff, DelayedScheduler

ATTEMPTS = 3


@dataclass
class Job:
    """What the model knows of an entry."""

    due: int
    attempt: int = 0
    state: str = "waiting"


class DelayedMachine(RuleBasedStateMachine):
    """A scheduler with small levels, three attempts and no jitter, killed and opened again at any time."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp())
        self.opened = 0
        self.now = 0
        self.jobs: dict[int, Job] = {}
        self.scheduler = self.open()

    def open(self) -> DelayedScheduler:
        """Open what is in the directory."""
        return DelayedScheduler(
            self.directory / f"journal-{self.opened}",
            tick=1,
            levels=(3, 2),
            backoff=Backoff(base=2.0, factor=2.0, cap=6.0),
            chance=lambda: 0.5,
            max_attempts=ATTEMPTS,
        )

    def teardown(self) -> None:
        """Leave nothing behind."""
        self.scheduler.close()
        shutil.rmtree(self.directory)

    def ids(self, state: str) -> list[int]:
        """Return the entries in a state."""
        return [number for number, job in self.jobs.items() if job.state == state]

    @rule(delay=st.integers(-2, 30))
    def enqueue(self, delay: int) -> None:
        """Add an entry; its id is greater than any before."""
        number = self.scheduler.enqueue(b"%d" % delay, delay=delay, now=self.now)
        assert number > max(self.jobs, default=0)
        self.jobs[number] = Job(self.now + delay)

    @precondition(lambda self: self.jobs)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        """Cancel an entry in any state."""
        number = data.draw(st.sampled_from(sorted(self.jobs)))
        waits = self.jobs[number].state == "waiting"
        assert self.scheduler.cancel(number) == waits
        if waits:
            self.jobs[number].state = "gone"

    @rule(distance=st.integers(0, 12), limit=st.sampled_from([1, 2, 10**6]))
    def tick(self, distance: int, limit: int) -> None:
        """Let time pass."""
        self.now += distance
        due = {number for number in self.ids("waiting") if self.jobs[number].due <= self.now}
        entries = self.scheduler.tick(self.now, limit)
        assert len(entries) == min(limit, len(due))
        assert {entry.id for entry in entries} <= due
        for entry in entries:
            job = self.jobs[entry.id]
            job.state = "flying"
            job.attempt += 1
            assert (entry.due, entry.attempt) == (job.due, job.attempt)

    @rule(distance=st.integers(1, 12))
    def go_back(self, distance: int) -> None:
        """Let the clock jump back for a moment; the first tick after an opening has no earlier one to compare with."""
        if self.scheduler.metrics().ticks:
            assert self.scheduler.tick(self.now - distance) == []

    @precondition(lambda self: self.ids("flying"))
    @rule(data=st.data(), how=st.sampled_from(["done", "failed", "handed back"]))
    def end(self, data: st.DataObject, how: str) -> None:
        """End an attempt."""
        number = data.draw(st.sampled_from(self.ids("flying")))
        job = self.jobs[number]
        if how == "done":
            self.scheduler.done(number)
            job.state = "gone"
        elif how == "handed back":
            self.scheduler.hand_back(number)
            job.state, job.attempt = "waiting", job.attempt - 1
        elif job.attempt == ATTEMPTS:
            assert self.scheduler.failed(number, "no", now=self.now) is None
            job.state = "dead"
        else:
            job.state, job.due = "waiting", self.now + (2, 4)[job.attempt - 1]
            assert self.scheduler.failed(number, "no", now=self.now) == job.due

    @precondition(lambda self: self.ids("dead"))
    @rule(data=st.data())
    def forget(self, data: st.DataObject) -> None:
        """Forget a dead entry."""
        number = data.draw(st.sampled_from(self.ids("dead")))
        assert self.scheduler.forget(number)
        self.jobs[number].state = "gone"

    @rule()
    def snapshot(self) -> None:
        """Shrink the journal."""
        self.scheduler.snapshot()

    @rule(torn=st.sampled_from([b"", b"half a frame"]))
    def crash(self, torn: bytes) -> None:
        """Go on with what is on disk at this very moment, and perhaps an unfinished write behind it."""
        before = self.directory / f"journal-{self.opened}"
        self.opened += 1
        after = self.directory / f"journal-{self.opened}"
        after.write_bytes(before.read_bytes() + torn)
        self.scheduler.close()
        self.scheduler = self.open()
        assert (self.scheduler.torn is not None) == bool(torn)
        for number in self.ids("flying"):
            self.jobs[number].state = "dead" if self.jobs[number].attempt == ATTEMPTS else "waiting"

    @invariant()
    def they_agree(self) -> None:
        """Both hold the same number of each kind, and nobody is asked to wait beyond the first due time."""
        metrics = self.scheduler.metrics()
        assert metrics.in_flight == len(self.ids("flying"))
        assert metrics.pending == len(self.ids("waiting")) + len(self.ids("flying"))
        assert {dead.entry.id for dead in self.scheduler.dead()} == set(self.ids("dead"))
        times = [self.jobs[number].due for number in self.ids("waiting")]
        wanted = self.scheduler.next_tick()
        assert (wanted is None) == (not times)
        assert wanted is None or wanted <= max(min(times), self.now)


TestDelayed = DelayedMachine.TestCase
TestDelayed.settings = settings(deadline=None, max_examples=60, stateful_step_count=40)
