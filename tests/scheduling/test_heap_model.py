"""The heap against a model that sorts everything every time."""

import dataclasses
import math

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from scheduling import FAST, Aging, ReadyHeap
from tests.scheduling.support import Job


class HeapMachine(RuleBasedStateMachine):
    """The heap against a dictionary that is searched from end to end every time.

    There are few times beside many, so that often several jobs are due at once; few ids, so that they come again.
    """

    ids = range(13)
    quarters = st.integers(-40, 400).map(lambda number: number / 4)
    run_ats = st.one_of(quarters, st.sampled_from([0, 0.0, -0.0, 1, 50.0]))
    priorities = st.sampled_from([1.0, 1.5, 2.0, 2.5, 3.0, 4.0])
    creations = st.integers(0, 1).map(float)
    aging = FAST

    def __init__(self) -> None:
        super().__init__()
        self.heap: ReadyHeap[Job] = ReadyHeap(self.aging)
        self.model: dict[int, Job] = {}
        self.last: dict[int, Job] = {}
        self.clock = -math.inf

    def urgency(self, number: int) -> tuple[float, float, float, int]:
        """Return what the entry with this id is ordered by."""
        job = self.model[number]
        return self.aging.effective(job.priority, self.clock - job.run_at), job.run_at, job.created_at, number

    def ordered(self) -> list[int]:
        """Return the ids, the most urgent first."""
        return sorted(self.model, key=self.urgency)

    def put(self, job: Job, now: float) -> None:
        """Push a job, new or not."""
        self.heap.push(job, now)
        self.model[job.id] = self.last[job.id] = job
        self.clock = max(self.clock, now)

    @rule(number=st.sampled_from(ids), priority=priorities, run_at=run_ats, created_at=creations, now=quarters)
    def push(self, number: int, priority: float, run_at: float, created_at: float, now: float) -> None:
        """Add an entry or move one."""
        self.put(Job(number, priority, run_at, created_at), now)

    @rule(numbers=st.sets(st.sampled_from(ids)), priority=priorities, run_at=run_ats)
    def push_many(self, numbers: set[int], priority: float, run_at: float) -> None:
        """Add entries that are all due at one time, and no later than others."""
        for number in numbers:
            self.put(Job(number, priority, run_at, created_at=0.0), now=-10.0)

    @rule(jobs=st.lists(st.builds(Job, st.sampled_from(ids), priorities, run_ats, creations), max_size=8), now=quarters)
    def extend(self, jobs: list[Job], now: float) -> None:
        """Push many at once, the same id among them more than once perhaps."""
        self.heap.extend(jobs, now)
        for job in jobs:
            self.model[job.id] = self.last[job.id] = job
        self.clock = max(self.clock, now)

    @rule(number=st.sampled_from(ids), now=quarters)
    def push_the_same(self, number: int, now: float) -> None:
        """Push the very object again that was the last one with this id, whether it is there or not."""
        if number in self.last:
            self.put(self.last[number], now)

    @rule(number=st.sampled_from(ids), now=quarters)
    def replace(self, number: int, now: float) -> None:
        """Discard the last object with this id, and push another one in its place."""
        if number in self.last:
            self.discard(number)
            self.put(dataclasses.replace(self.last[number]), now)

    @rule(number=st.sampled_from(ids))
    def discard(self, number: int) -> None:
        """Discard an entry or one that is not there."""
        assert self.heap.discard(number) == (self.model.pop(number, None) is not None)

    @rule(numbers=st.sets(st.sampled_from(ids), min_size=6))
    def discard_many(self, numbers: set[int]) -> None:
        """Discard so many that the heap sweeps."""
        for number in numbers:
            self.discard(number)

    @rule(now=quarters)
    def rescore(self, now: float) -> None:
        """Let time pass, or go back."""
        before = self.ordered()
        self.clock = max(self.clock, now)
        reordered = self.heap.rescore(now)
        assert reordered or self.ordered()[:1] == before[:1]

    @precondition(lambda self: self.model)
    @rule()
    def pop(self) -> None:
        """Take the most urgent."""
        first = self.ordered()[0]
        assert self.heap.pop() is self.model.pop(first)

    @rule()
    def drain(self) -> None:
        """Take everything."""
        expected = [self.model[number] for number in self.ordered()]
        assert all(got is wanted for got, wanted in zip(self.heap.drain(), expected, strict=True))
        self.model.clear()

    @invariant()
    def holds_what_the_model_holds(self) -> None:
        """The heap has the entries of the model."""
        assert len(self.heap) == len(self.model)
        assert bool(self.heap) == bool(self.model)
        assert all((number in self.heap) == (number in self.model) for number in self.ids)
        assert all(self.heap.get(number) is self.model.get(number) for number in self.ids)

    @precondition(lambda self: self.model)
    @rule()
    def peek(self) -> None:
        """Look at the most urgent; no invariant, as looking tidies up."""
        assert self.heap.peek() is self.model[self.ordered()[0]]

    def teardown(self) -> None:
        """Compare whatever is left."""
        self.drain()


class SlowHeapMachine(HeapMachine):
    """The same with thresholds and fractional steps."""

    aging = Aging(step=8.0, decrement=0.3, thresholds=(0.0, 10.0, 20.0))


TestFastHeap = HeapMachine.TestCase
TestSlowHeap = SlowHeapMachine.TestCase
for machine in (TestFastHeap, TestSlowHeap):
    machine.settings = settings(deadline=None, max_examples=150, stateful_step_count=40)
del machine
