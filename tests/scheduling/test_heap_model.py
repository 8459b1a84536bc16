"""The heap against a model that sorts everything every time."""

import math

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from scheduling import FAST, Aging, ReadyHeap
from tests.scheduling.support import Incomparable


class HeapMachine(RuleBasedStateMachine):
    """The heap against a dictionary that is searched from end to end every time."""

    ids = range(13)
    quarters = st.integers(-40, 400).map(lambda number: number / 4)
    aging = FAST

    def __init__(self) -> None:
        super().__init__()
        self.heap: ReadyHeap[Incomparable] = ReadyHeap(self.aging)
        self.model: dict[int, tuple[float, float, float, Incomparable]] = {}
        self.clock = -math.inf

    def urgency(self, number: int) -> tuple[float, float, float, int]:
        """Return what the entry with this id is ordered by."""
        priority, run_at, created_at, _ = self.model[number]
        return self.aging.effective(priority, self.clock - run_at), run_at, created_at, number

    def ordered(self) -> list[int]:
        """Return the ids, the most urgent first."""
        return sorted(self.model, key=self.urgency)

    @rule(
        number=st.sampled_from(ids),
        priority=st.sampled_from([1.0, 1.5, 2.0, 2.5, 3.0, 4.0]),
        run_at=quarters,
        created_at=st.integers(0, 1).map(float),
        now=quarters,
    )
    def push(self, number: int, priority: float, run_at: float, created_at: float, now: float) -> None:
        """Add an entry or move one."""
        item = Incomparable()
        self.heap.push(number, item, priority=priority, run_at=run_at, created_at=created_at, now=now)
        self.model[number] = priority, run_at, created_at, item
        self.clock = max(self.clock, now)

    @rule(number=st.sampled_from(ids))
    def discard(self, number: int) -> None:
        """Discard an entry or one that is not there."""
        assert self.heap.discard(number) == (self.model.pop(number, None) is not None)

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
        assert self.heap.pop() is self.model.pop(first)[-1]

    @rule()
    def drain(self) -> None:
        """Take everything."""
        expected = [self.model[number][-1] for number in self.ordered()]
        assert all(got is wanted for got, wanted in zip(self.heap.drain(), expected, strict=True))
        self.model.clear()

    @invariant()
    def holds_what_the_model_holds(self) -> None:
        """The heap has the entries of the model."""
        assert len(self.heap) == len(self.model)
        assert bool(self.heap) == bool(self.model)
        assert all((number in self.heap) == (number in self.model) for number in self.ids)

    @precondition(lambda self: self.model)
    @invariant()
    def shows_the_most_urgent(self) -> None:
        """The heap shows what the model would start."""
        assert self.heap.peek() is self.model[self.ordered()[0]][-1]


class SlowHeapMachine(HeapMachine):
    """The same with thresholds and fractional steps."""

    aging = Aging(step=8.0, decrement=0.3, thresholds=(0.0, 10.0, 20.0))


TestFastHeap = HeapMachine.TestCase
TestSlowHeap = SlowHeapMachine.TestCase
for machine in (TestFastHeap, TestSlowHeap):
    machine.settings = settings(deadline=None, max_examples=150, stateful_step_count=40)
del machine
