"""What waiting costs: work that does not grow with what is pending, and memory that is given back."""

import tracemalloc
from collections.abc import Callable

from scheduling import TimingWheel
from tests.scheduling.support import ticks


class CountedId:
    """An id that counts how often any of its kind is hashed: how often a timer is looked at."""

    __slots__ = ("number",)
    looks = 0

    def __init__(self, number: int) -> None:
        self.number = number

    def __hash__(self) -> int:
        CountedId.looks += 1
        return self.number


def pending_wheel(timers: int, last: int = 10**9) -> TimingWheel[CountedId, None]:
    """Return a wheel with timers all over its levels and its overflow, but none in the first 1,000 ticks."""
    wheel: TimingWheel[CountedId, None] = TimingWheel(start=0, tick=1)
    for number in range(timers):
        wheel.insert(CountedId(number), 1000 + number * (last // timers), None)
    return wheel


def test_a_million_pending_timers_cost_a_tick_nothing(lines_of: Callable[..., int]) -> None:
    """A tick, a next expiry and a cancellation cost with a million timers what they cost with a thousand."""
    few, many = pending_wheel(1000), pending_wheel(1_000_000)
    CountedId.looks = 0
    assert lines_of(lambda: many.advance(1)) <= 1.5 * lines_of(lambda: few.advance(1))
    assert lines_of(many.next_expiry) <= 1.5 * lines_of(few.next_expiry)
    assert CountedId.looks == 0
    extra = CountedId(-1)
    for due in (5, 500, 10**7, 10**12):
        many.insert(extra, due, None)
        assert lines_of(lambda: many.cancel(extra)) < 50
    assert CountedId.looks <= 4 * 6


def test_a_year_with_nothing_due_costs_what_a_tick_costs(lines_of: Callable[..., int]) -> None:
    """The wheel jumps over empty time: the distance does not matter."""
    year = 365 * 24 * 3600 * 1000
    costs = []
    for distance in (1, year):
        wheel = ticks()
        wheel.insert("far", 2 * year, None)
        costs.append(lines_of(lambda wheel=wheel, distance=distance: wheel.advance(distance)))
    assert costs[1] <= 1.5 * costs[0]


def test_firing_costs_in_proportion_to_what_fires(lines_of: Callable[..., int]) -> None:
    """A jump over everything visits each timer once, not once per level."""
    wheel = pending_wheel(10_000)
    CountedId.looks = 0
    assert len(wheel.advance(2 * 10**9)) == 10_000
    assert CountedId.looks == 10_000
    assert lines_of(lambda: pending_wheel(2000).advance(2 * 10**9)) < 12 * lines_of(
        lambda: pending_wheel(200).advance(2 * 10**9)
    )


def test_an_id_is_hashed_no_more_than_it_must_be() -> None:
    """Twice when it is set, as it is kept in two places, and once when it fires in the lowest level: a UUID is slow."""
    wheel: TimingWheel[CountedId, None] = TimingWheel(start=0, tick=1)
    CountedId.looks = 0
    for number in range(1, 201):
        wheel.insert(CountedId(number), number, None)
    assert CountedId.looks == 2 * 200
    for now in range(1, 201):
        assert len(wheel.advance(now)) == 1
    assert CountedId.looks == 3 * 200


def test_a_hundred_thousand_future_timers_take_bounded_memory_and_none_is_early() -> None:
    """At most 160 bytes each beyond ids and items, and each fires at its own tick."""
    dues = [1000 + 7919 * number % 400_009 * 1000 for number in range(100_000)]
    wheel = ticks()
    tracemalloc.start()
    for number, due in enumerate(dues):
        wheel.insert(number, due, due)
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert grown / len(dues) <= 160
    fired = 0
    while wheel:
        now = wheel.next_expiry()
        batch = wheel.advance(now)
        assert all(due == now for _, due in batch)
        fired += len(batch)
    assert fired == len(dues)


def test_timers_that_are_cancelled_leave_nothing_behind() -> None:
    """Setting and cancelling, in every level and in thousands of revolutions, takes no memory for good."""
    wheel = ticks()
    wheel.insert("bystander", 10**15, None)
    tracemalloc.start()
    for number in range(5000):
        for due in (1 + number % 255, 20_000 + number, 10**6 * (1 + number % 50), 10**8 * (1 + number)):
            wheel.insert(number, due, None)
        wheel.cancel(number)
        wheel.advance(number // 5000)
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert grown < 10_000
    assert wheel.advance(10**14) == []
    assert wheel.next_expiry() <= 10**15
