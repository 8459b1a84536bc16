"""The delay before the next attempt: growth, cap, jitter, and no error whatever the attempt."""

import dataclasses
import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduling import Backoff

quick = settings(deadline=None, max_examples=300)


def delay_for(attempt: int, draw: float) -> float:
    """Return the delay of the default backoff when chance says `draw`."""
    return Backoff().delay(attempt, random=lambda: draw)


def test_the_default_grows_fivefold_up_to_an_hour() -> None:
    """The ceilings are 1 s, 5 s, 25 s and so on, and from the seventh attempt on an hour."""
    ceilings = [Backoff().ceiling(attempt) for attempt in range(1, 9)]
    assert ceilings == [1.0, 5.0, 25.0, 125.0, 625.0, 3125.0, 3600.0, 3600.0]


@pytest.mark.parametrize("attempt", [0, -1, -100_000])
def test_anything_below_the_first_attempt_counts_as_the_first(attempt: int) -> None:
    """An attempt number below 1 gives the delay of the first."""
    assert Backoff(base=7.0).ceiling(attempt) == 7.0


@pytest.mark.parametrize("attempt", [16, 64, 1100, 100_000, 10**400])
@pytest.mark.parametrize("factor", [1.0 + 1e-12, 2.0, 5.0, 1e9, 1e308])
@pytest.mark.parametrize("cap", [3600.0, 1e12, 1.7e308])
def test_no_number_of_attempts_overflows(attempt: int, factor: float, cap: float) -> None:
    """However often a job has failed and however steep the growth, the delay is a number within the cap."""
    backoff = Backoff(base=1e9, factor=factor, cap=cap)
    assert 0 < backoff.ceiling(attempt) <= cap
    assert 0 < backoff.delay(attempt) <= cap


def test_many_attempts_arrive_at_the_cap_and_not_short_of_it() -> None:
    """Growth ends at the cap itself, even where the power alone would be too large for a float."""
    assert Backoff(base=1e-200, factor=10.0, cap=1e100).ceiling(300) == pytest.approx(1e99)
    assert Backoff(base=1e-200, factor=10.0, cap=1e100).ceiling(302) == 1e100
    assert Backoff(factor=1e9).ceiling(100_000) == 3600.0


def test_a_rounded_product_does_not_pass_the_cap() -> None:
    """A cap that lies a single bit below a power is still the longest delay."""
    cap = math.nextafter(2.0**29, 0.0)
    assert Backoff(base=1.0, factor=2.0, cap=cap).ceiling(30) == cap


def test_a_factor_of_1_gives_equal_delays() -> None:
    """Without growth every attempt has the base as its ceiling."""
    assert {Backoff(base=3.0, factor=1.0).ceiling(attempt) for attempt in (1, 2, 100, 10**400)} == {3.0}


def test_a_cap_below_the_base_wins() -> None:
    """The cap holds for the first attempt too, and a cap of 0 means no delay at all."""
    assert [Backoff(base=10.0, cap=4.0).ceiling(attempt) for attempt in (1, 2)] == [4.0, 4.0]
    assert [Backoff(cap=0.0).delay(attempt) for attempt in (1, 2, 100_000)] == [0.0, 0.0, 0.0]


backoffs = st.builds(
    Backoff,
    base=st.floats(1e-3, 1e6),
    factor=st.one_of(st.floats(1.0, 10.0), st.floats(1.0, 1e300)),
    cap=st.one_of(st.just(0.0), st.floats(1e-6, 1e8)),
)


@quick
@given(backoff=backoffs, attempt=st.integers(-5, 200_000))
def test_a_ceiling_never_falls_from_one_attempt_to_the_next(backoff: Backoff, attempt: int) -> None:
    """Each failure makes the wait as long as before or longer."""
    assert backoff.ceiling(attempt) <= backoff.ceiling(attempt + 1)


@quick
@given(backoff=backoffs, attempt=st.integers(1, 10_000), draw=st.floats(0.0, 1.0))
def test_jitter_stays_between_half_and_one_and_a_half_and_below_the_cap(
    backoff: Backoff, attempt: int, draw: float
) -> None:
    """Whatever is drawn, the delay is near its ceiling, within the cap and not negative."""
    ceiling = backoff.ceiling(attempt)
    delay = backoff.delay(attempt, random=lambda: draw)
    assert 0 <= delay <= backoff.cap
    assert ceiling * 0.5 <= delay <= ceiling * 1.5


def test_jitter_is_even_around_the_ceiling() -> None:
    """Draws of 0, a half and 1 give half, all and one and a half of the ceiling."""
    assert [delay_for(3, draw) for draw in (0.0, 0.5, 1.0)] == [12.5, 25.0, 37.5]


def test_jitter_keeps_its_spread_at_the_cap() -> None:
    """Jobs that have all arrived at the cap still come back spread over half of it, not all at once."""
    assert [delay_for(9, draw) for draw in (0.0, 0.5, 1.0)] == [1800.0, 2700.0, 3600.0]


def test_jitter_is_drawn_anew_for_each_delay() -> None:
    """Two jobs that failed together do not come back together."""
    assert len({Backoff().delay(4) for _ in range(50)}) > 40


@pytest.mark.parametrize("draw", [-1.0, 2.0, math.nan, math.inf, -math.inf])
def test_a_source_of_chance_that_misbehaves_does_no_harm(draw: float) -> None:
    """A draw outside 0 to 1, even one that is no number, still gives a delay in the range."""
    assert 12.5 <= delay_for(3, draw) <= 37.5


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"base": 0.0}, "Backoff base is 0.0: give finite seconds above 0."),
        ({"base": math.inf}, "Backoff base is inf: give finite seconds above 0."),
        ({"base": math.nan}, "Backoff base is nan: give finite seconds above 0."),
        ({"factor": 0.99}, "Backoff factor is 0.99: give a finite number from 1 up."),
        ({"factor": math.inf}, "Backoff factor is inf: give a finite number from 1 up."),
        ({"cap": -1.0}, "Backoff cap is -1.0: give finite seconds, 0 for no delay."),
        ({"cap": math.nan}, "Backoff cap is nan: give finite seconds, 0 for no delay."),
        ({"base": 1e-200, "cap": 1e200}, "Backoff cap 1e+200 is over 1e300 times base 1e-200: lower it."),
    ],
)
def test_numbers_that_make_no_delay_are_refused(arguments: dict[str, float], text: str) -> None:
    """The error names the setting, its value and what would do."""
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        Backoff(**arguments)


def test_a_backoff_is_a_value() -> None:
    """Equal numbers make equal backoffs, and nobody can change one afterwards."""
    assert len({Backoff(), Backoff(1.0, 5.0, 3600.0), Backoff(cap=1.0)}) == 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        Backoff().cap = 1.0
