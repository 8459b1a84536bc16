"""Times in seconds as floats: never early, hardly late, whatever rounding does."""

import math

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from scheduling import TimingWheel

quick = settings(deadline=None, max_examples=500)


def test_what_was_due_long_before_a_late_start_is_told_at_once() -> None:
    """The next expiry of a time near 0 on a wheel that starts decades later is near 0 too."""
    wheel: TimingWheel[str, None] = TimingWheel(start=1616330965.8812845, tick=0.1)
    wheel.insert("timer", 29.576, None)
    assert wheel.next_expiry() == pytest.approx(29.576, abs=0.11)
    assert wheel.advance(1616330965.8812845) == [("timer", None)]


def test_a_wheel_that_starts_now_counts_from_there() -> None:
    """With the start at the present time of a clock, timers are exact to the millisecond of that clock."""
    start = 1_700_000_000.25
    wheel: TimingWheel[str, str] = TimingWheel(start=start)
    wheel.insert("a", start + 1.5, "item")
    wheel.insert("b", start + 90_000, "item")
    assert wheel.advance(start + 1.499) == []
    assert wheel.advance(start + 1.501) == [("a", "item")]
    assert wheel.advance(start + 89_999.999) == []
    assert wheel.advance(start + 90_000.001) == [("b", "item")]


def test_a_due_time_on_a_tick_fires_at_that_very_time() -> None:
    """Round times in seconds, as people write them, fire at the first advance to exactly that time."""
    for due in (0.0, 0.001, 0.5, 1.0, 5.0, 60.0, 3600.0, 1_700_000_000.0):
        wheel: TimingWheel[str, None] = TimingWheel()
        wheel.insert("timer", due, None)
        assert wheel.advance(due) == [("timer", None)]


times = st.one_of(
    st.floats(0, 10),
    st.floats(0, 1e5),
    st.floats(1.6e9, 1.8e9),
    st.integers(0, 10_000).map(lambda number: number / 1000),
    st.integers(0, 10_000).map(lambda number: number * 0.001),
)
tick_lengths = st.one_of(st.sampled_from([0.001, 0.1, 1.0, 0.25, 1 / 3]), st.floats(1e-4, 10))


@quick
@given(start=st.one_of(st.just(0.0), times), tick=tick_lengths, due=times, ulps=st.integers(1, 3))
@example(start=0.0, tick=0.1, due=0.3, ulps=1)
@example(start=0.0, tick=0.001, due=1_700_000_000.001, ulps=1)
def test_a_float_never_fires_early(start: float, tick: float, due: float, ulps: int) -> None:
    """Not even the nearest float before the due time fires a timer."""
    wheel: TimingWheel[str, None] = TimingWheel(start=start, tick=tick)
    wheel.insert("timer", due, None)
    now = due
    for _ in range(ulps):
        now = math.nextafter(now, -math.inf)
    assert wheel.advance(now) == []
    assert wheel.advance(max(start, due) + 2 * tick) == [("timer", None)]


@quick
@given(tick=tick_lengths, due=times)
@example(tick=0.1, due=0.3)
@example(tick=0.001, due=1_700_000_000.001)
def test_a_float_fires_within_a_tick(tick: float, due: float) -> None:
    """One tick after its due time a timer has fired at the latest."""
    wheel: TimingWheel[str, None] = TimingWheel(tick=tick)
    wheel.insert("timer", due, None)
    assert wheel.advance(due + tick) == [("timer", None)]


@quick
@given(start=times, tick=tick_lengths, due=times)
def test_a_float_fires_within_a_tick_of_any_start(start: float, tick: float, due: float) -> None:
    """With a start of its own too, but for the last bits of the sum."""
    assume(due >= start)
    wheel: TimingWheel[str, None] = TimingWheel(start=start, tick=tick)
    wheel.insert("timer", due, None)
    assert wheel.advance(due + tick + 2 * math.ulp(due)) == [("timer", None)]


@quick
@given(start=times, tick=tick_lengths, delays=st.lists(st.floats(0, 1e5), min_size=1, max_size=8))
def test_waiting_until_the_next_expiry_gets_ahead(start: float, tick: float, delays: list[float]) -> None:
    """Each advance to the next expiry fires something or comes closer, never too late for the first timer."""
    wheel: TimingWheel[int, float] = TimingWheel(start=start, tick=tick, levels=(4, 4))
    for number, delay in enumerate(delays):
        wheel.insert(number, start + delay, start + delay)
    pending = dict(enumerate(start + delay for delay in delays))
    for _ in range(4 * len(delays) + 1):
        if not wheel:
            break
        expiry = wheel.next_expiry()
        assert expiry is not None
        assert expiry <= min(pending.values()) + tick + math.ulp(expiry)
        for number, due in wheel.advance(expiry):
            assert due <= expiry
            del pending[number]
    assert not wheel
