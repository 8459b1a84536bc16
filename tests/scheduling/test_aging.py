"""The effective priority: values, bounds, and when it changes next."""

import dataclasses
import math
import re
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduling import FAST, SLOW, Aging

quick = settings(deadline=None, max_examples=300)

THREE_WAITS = "give three finite waits from 0 up."

agings = st.builds(
    Aging,
    step=st.floats(0.001, 1e5),
    decrement=st.sampled_from([1.0, 0.1, 0.25, 1 / 3, 2.0, 1e-3]),
    thresholds=st.tuples(*[st.floats(0, 1e5)] * 3),
)
priorities = st.sampled_from([1.0, 1.0 + 1e-10, 1.2, 1.3, 1.5, 2.0, 2.25, 2.5, 2.9, 3.0, 7.0])
waits = st.floats(-1e6, 1e8)


@pytest.mark.parametrize(
    ("waited", "effective"),
    [(-5.0, 3.0), (0.0, 3.0), (29.999, 3.0), (30.0, 2.0), (59.999, 2.0), (60.0, 1.0), (1e9, 1.0)],
)
def test_fast_makes_low_medium_after_30_seconds_and_high_after_60(waited: float, effective: float) -> None:
    """A Low job is Medium from its 30th second on and High from its 60th."""
    assert FAST.effective(3.0, waited) == effective


@pytest.mark.parametrize(
    ("priority", "threshold"),
    [(1.49, 0.0), (1.5, 120.0), (2.0, 120.0), (2.49, 120.0), (2.5, 300.0), (3.0, 300.0), (9.0, 300.0)],
)
def test_a_priority_waits_for_the_threshold_of_its_nearest_level(priority: float, threshold: float) -> None:
    """A fractional priority has the threshold of its nearest level, and halves go to the less urgent one."""
    assert SLOW.effective(priority, threshold + 29.999) == priority
    assert SLOW.effective(priority, threshold + 30.0) == pytest.approx(priority - 0.1)


def test_tenths_stay_clean() -> None:
    """Every step of a tenth gives the very float that its decimal notation reads as."""
    steps = [SLOW.effective(3.0, 300.0 + 30.0 * step) for step in range(21)]
    assert steps == [float(f"{3 - step / 10:.1f}") for step in range(21)]


@quick
@given(
    priority=st.integers(4, 28).map(lambda quarters: quarters / 4),
    waited=st.integers(-1000, 100_000).map(lambda eighths: eighths / 8),
    step=st.integers(1, 400).map(lambda eighths: eighths / 8),
    decrement=st.integers(0, 16).map(lambda eighths: eighths / 8),
    thresholds=st.tuples(*[st.integers(0, 500).map(float)] * 3),
)
def test_it_equals_the_formula_in_exact_arithmetic(
    priority: float, waited: float, step: float, decrement: float, thresholds: tuple[float, float, float]
) -> None:
    """Priority less decrement for each whole step waited beyond the threshold, but at least 1."""
    level = min(max(math.floor(priority + 0.5), 1), 3)
    steps = max(Fraction(0), Fraction(waited) - Fraction(thresholds[level - 1])) // Fraction(step)
    expected = max(Fraction(1), Fraction(priority) - Fraction(decrement) * steps)
    assert Aging(step, decrement, thresholds).effective(priority, waited) == float(expected)


@quick
@given(aging=agings, priority=st.floats(0.0, 10.0), waits=st.lists(waits, min_size=2, max_size=6))
def test_it_never_rises_with_the_wait(aging: Aging, priority: float, waits: list[float]) -> None:
    """The longer the wait the more urgent, between 1 and the priority itself; what is below 1 counts as 1."""
    values = [aging.effective(priority, waited) for waited in sorted(waits)]
    assert values == sorted(values, reverse=True)
    assert all(1.0 <= value <= max(1.0, priority) for value in values)


@quick
@given(aging=agings, priority=priorities)
def test_the_bound_is_when_it_arrives_at_1(aging: Aging, priority: float) -> None:
    """From the bound on the effective priority is 1, and a moment earlier it is not yet."""
    bound = aging.bound(priority)
    assert aging.effective(priority, bound) == 1.0
    assert aging.effective(priority, bound * 2) == 1.0
    if priority > 1.0:
        assert aging.effective(priority, bound - aging.step / 100) > 1.0


def test_the_bounds_of_the_two_presets() -> None:
    """A Low job is High after 60 seconds with the fast preset and after 15 minutes with the slow one."""
    assert [FAST.bound(priority) for priority in (1.0, 2.0, 3.0)] == [0.0, 30.0, 60.0]
    assert [SLOW.bound(priority) for priority in (1.0, 2.0, 3.0)] == [0.0, 420.0, 900.0]


@quick
@given(aging=agings, priority=priorities, waited=st.floats(-1e4, 1e6))
def test_it_changes_at_the_next_change_and_not_before(aging: Aging, priority: float, waited: float) -> None:
    """The value holds until the announced moment, differs right after it, and a moment is always ahead."""
    now, change = aging.effective(priority, waited), aging.next_change(priority, waited)
    assert change > 0
    if now == 1.0:
        assert change == math.inf
    else:
        moment = aging.step / 1000
        assert aging.effective(priority, max(waited, waited + change - moment)) == now
        assert aging.effective(priority, waited + change + moment) < now


def test_a_wait_of_almost_a_step_still_has_its_change_ahead() -> None:
    """Where rounding leaves no time until the next step, the change is announced a moment ahead."""
    aging = Aging(step=0.1)
    overdue = [math.nextafter(aging.step * steps, 0.0) for steps in range(1, 2000)]
    overdue += [aging.step * steps for steps in range(1, 2000)]
    assert all(aging.next_change(5000.0, waited) > 0 for waited in overdue)


def test_the_next_changes_of_a_low_job() -> None:
    """A Low job that is not yet due, just due, and Medium already, hears of its next step in time."""
    assert FAST.next_change(3.0, -10.0) == 40.0
    assert FAST.next_change(3.0, 0.0) == 30.0
    assert FAST.next_change(3.0, 45.0) == 15.0
    assert SLOW.next_change(3.0, 0.0) == 330.0


def test_an_outlook_is_both_answers_at_once() -> None:
    """The outlook of a job is its effective priority and its next change."""
    assert FAST.outlook(3.0, 45.0) == (FAST.effective(3.0, 45.0), FAST.next_change(3.0, 45.0)) == (2.0, 15.0)


def test_a_decrement_of_0_turns_aging_off() -> None:
    """Without a decrement a priority stays what it is for good, and has no bound."""
    off = Aging(decrement=0)
    assert [off.effective(priority, 1e9) for priority in (0.5, 1.9999999996, 3.0)] == [1.0, 1.9999999996, 3.0]
    assert off.bound(3.0) == off.next_change(3.0, 0.0) == math.inf
    assert off.bound(1.0) == 0.0


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"step": 0.0}, "Aging step is 0.0: give finite seconds, at least 0.000001."),
        ({"step": -30.0}, "Aging step is -30.0: give finite seconds, at least 0.000001."),
        ({"step": math.inf}, "Aging step is inf: give finite seconds, at least 0.000001."),
        ({"step": math.nan}, "Aging step is nan: give finite seconds, at least 0.000001."),
        ({"decrement": -0.1}, "Aging decrement is -0.1: give 0 for none, or a finite 1e-9 up."),
        ({"decrement": 1e-10}, "Aging decrement is 1e-10: give 0 for none, or a finite 1e-9 up."),
        ({"decrement": math.nan}, "Aging decrement is nan: give 0 for none, or a finite 1e-9 up."),
        ({"thresholds": (0.0, 1.0)}, f"Aging thresholds are (0.0, 1.0): {THREE_WAITS}"),
        ({"thresholds": (0, 0, -1)}, f"Aging thresholds are (0, 0, -1): {THREE_WAITS}"),
        ({"thresholds": (0, math.nan, 0)}, f"Aging thresholds are (0, nan, 0): {THREE_WAITS}"),
        ({"thresholds": (math.inf, 0, 0)}, f"Aging thresholds are (inf, 0, 0): {THREE_WAITS}"),
    ],
)
def test_numbers_that_make_no_schedule_are_refused(arguments: dict[str, Any], text: str) -> None:
    """The error names the setting, its value and what would do."""
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        Aging(**arguments)


def test_an_aging_is_a_value() -> None:
    """Equal numbers make equal agings, usable as keys, and nobody can change one afterwards."""
    assert len({Aging(), FAST, SLOW}) == 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        FAST.step = 1.0
