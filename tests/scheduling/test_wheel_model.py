"""The wheel against a model that searches everything every time."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.scheduling.support import ticks


class WheelMachine(RuleBasedStateMachine):
    """The wheel against a dictionary that is searched from end to end every time."""

    levels: tuple[int, ...] = (2, 3, 2)
    ids = range(10)

    def __init__(self) -> None:
        super().__init__()
        self.wheel = ticks(self.levels)
        self.model: dict[int, tuple[int, object]] = {}
        self.now = 0

    @rule(number=st.sampled_from(ids), delay=st.integers(-3, 40))
    def insert(self, number: int, delay: int) -> None:
        """Set a timer or move one."""
        item = object()
        self.wheel.insert(number, self.now + delay, item)
        self.model.pop(number, None)
        self.model[number] = self.now + delay, item

    @rule(number=st.sampled_from(ids))
    def cancel(self, number: int) -> None:
        """Cancel a timer or one that is not there."""
        assert self.wheel.cancel(number) == (self.model.pop(number, None) is not None)

    @rule(distance=st.one_of(st.integers(0, 3), st.integers(0, 60)))
    def advance(self, distance: int) -> None:
        """Let time pass."""
        self.now += distance
        due = [number for number, (tick, _) in self.model.items() if tick <= self.now]
        due.sort(key=lambda number: self.model[number][0])
        assert self.wheel.advance(self.now) == [(number, self.model.pop(number)[1]) for number in due]

    @rule(distance=st.integers(1, 30))
    def go_back(self, distance: int) -> None:
        """Let the clock jump back for a moment."""
        assert self.wheel.advance(self.now - distance) == []

    @precondition(lambda self: self.model)
    @rule()
    def wait(self) -> None:
        """Let time pass until the wheel wants to be asked."""
        self.advance(max(0, self.wheel.next_expiry() - self.now))

    @invariant()
    def holds_what_the_model_holds(self) -> None:
        """The wheel has the timers of the model."""
        assert len(self.wheel) == len(self.model)
        assert all((number in self.wheel) == (number in self.model) for number in self.ids)

    @invariant()
    def expiry_is_a_lower_bound_and_exact_in_the_lowest_level(self) -> None:
        """The next expiry is no later than the first timer, and that very time when it is near."""
        expiry = self.wheel.next_expiry()
        if not self.model:
            assert expiry is None
            return
        first = min(tick for tick, _ in self.model.values())
        assert expiry <= first
        if first > self.now:
            assert expiry > self.now
        if self.now < first < (self.now // self.levels[0] + 1) * self.levels[0]:
            assert expiry == first


class OneLevelMachine(WheelMachine):
    """The same with a single level, so that almost everything lies in the overflow."""

    levels = (3,)


TestWheel = WheelMachine.TestCase
TestOneLevelWheel = OneLevelMachine.TestCase
for machine in (TestWheel, TestOneLevelWheel):
    machine.settings = settings(deadline=None, max_examples=200, stateful_step_count=40)
del machine
