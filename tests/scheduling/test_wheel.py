"""What waits for a time: exact ticks at every boundary, order, moves and cancellations."""

import itertools
import math
import re
from typing import Any

import pytest

from scheduling import TimingWheel
from tests.scheduling.support import ticks

SMALL = [(2,), (5,), (2, 2), (2, 3), (4, 3), (2, 2, 2), (3, 2, 4), (2, 3, 2, 2)]
SPANS = list(itertools.accumulate((256, 64, 64, 64), lambda span, size: span * size))
BOUNDARIES = [span + around for span in SPANS for around in (-1, 0, 1)]
DAYS_400 = 400 * 24 * 3600 * 1000


def fires_at(wheel: TimingWheel[Any, Any], due: int) -> bool:
    """Tell whether the only timer fires at `due` and not a tick before, jumping over what lies between."""
    return wheel.advance(due - 1) == [] and len(wheel.advance(due)) == 1 and len(wheel) == 0


@pytest.mark.parametrize("levels", SMALL)
def test_every_delay_from_every_offset_fires_at_its_tick_when_ticking(levels: tuple[int, ...]) -> None:
    """Tick by tick, over more than two revolutions of the whole wheel, nothing fires early or late."""
    capacity = math.prod(levels)
    for offset in range(capacity + 1):
        wheel = ticks(levels)
        wheel.advance(offset)
        for delay in range(2 * capacity + 2):
            wheel.insert(delay, offset + delay, offset + delay)
        for now in range(offset, offset + 2 * capacity + 2):
            assert wheel.advance(now) == [(now - offset, now)]


@pytest.mark.parametrize("levels", SMALL)
def test_every_delay_from_every_offset_fires_at_its_tick_when_jumping(levels: tuple[int, ...]) -> None:
    """One jump to just before the time and one to the time: nothing, then the timer."""
    capacity = math.prod(levels)
    for offset in range(capacity + 1):
        for delay in range(1, 2 * capacity + 3):
            wheel = ticks(levels)
            wheel.advance(offset)
            wheel.insert("timer", offset + delay, None)
            assert fires_at(wheel, offset + delay), (offset, delay)


@pytest.mark.parametrize("levels", SMALL)
def test_every_delay_from_every_offset_fires_at_its_tick_when_waiting(levels: tuple[int, ...]) -> None:
    """Whoever always waits until the next expiry gets there exactly, in at most one wait per tier."""
    capacity = math.prod(levels)
    for offset in range(capacity + 1):
        for delay in range(2 * capacity + 3):
            wheel = ticks(levels)
            wheel.advance(offset)
            wheel.insert("timer", offset + delay, None)
            waits = []
            while wheel:
                waits.append(wheel.next_expiry())
                wheel.advance(waits[-1])
            assert waits[-1] == offset + delay
            assert waits == sorted(set(waits))
            assert len(waits) <= len(levels) + 1


@pytest.mark.parametrize("offset", [0, 1, 255, 256, 257, SPANS[1] - 1, SPANS[2] + 255, SPANS[3] - 1])
@pytest.mark.parametrize("delay", [*BOUNDARIES, 2 * SPANS[-1] + 1, DAYS_400])
def test_the_boundaries_of_the_default_wheel(offset: int, delay: int) -> None:
    """A timer around the end of any level, after two revolutions or in 400 days is exact to the tick."""
    wheel = ticks()
    wheel.advance(offset)
    wheel.insert("timer", offset + delay, None)
    wheel.insert("bystander", offset + 2 * DAYS_400, None)
    assert wheel.advance(offset + delay - 1) == []
    assert wheel.advance(offset + delay) == [("timer", None)]


def test_integers_are_exact_at_any_size() -> None:
    """With integers throughout, ticks far beyond the precision of a float are told apart."""
    far = 10**30
    wheel: TimingWheel[str, None] = TimingWheel(start=far, tick=7)
    wheel.insert("on a tick", far + 7 * far, None)
    wheel.insert("between ticks", far + 7 * far + 1, None)
    assert wheel.advance(far + 7 * far - 1) == []
    assert wheel.advance(far + 7 * far + 6) == [("on a tick", None)]
    assert wheel.next_expiry() == far + 7 * far + 7
    assert wheel.advance(far + 7 * far + 7) == [("between ticks", None)]


def test_what_is_due_already_fires_at_the_next_advance() -> None:
    """A time that has passed is not lost, wherever the wheel stands, and is in no need of a new tick."""
    wheel = ticks()
    wheel.advance(1000)
    wheel.insert("now", 1000, None)
    wheel.insert("long ago", -5, None)
    wheel.insert("just missed", 999, None)
    assert wheel.next_expiry() == -5
    assert wheel.advance(1000) == [("long ago", None), ("just missed", None), ("now", None)]
    assert wheel.next_expiry() is None


def test_what_is_late_can_be_moved_and_cancelled() -> None:
    """A timer that is due already can still be cancelled or given more time before the next advance."""
    wheel = ticks()
    wheel.advance(10)
    for name in ("cancelled", "moved", "kept"):
        wheel.insert(name, 5, name)
    assert wheel.cancel("cancelled")
    wheel.insert("moved", 12, "moved")
    assert wheel.advance(11) == [("kept", "kept")]
    assert wheel.advance(12) == [("moved", "moved")]


def test_time_that_goes_back_is_ignored() -> None:
    """An advance to an earlier tick returns nothing and takes nothing back, not even for what is late."""
    wheel = ticks()
    wheel.advance(300)
    wheel.insert("late", 100, None)
    wheel.insert("soon", 301, None)
    assert wheel.advance(299) == []
    assert wheel.advance(-1) == []
    assert wheel.advance(301) == [("late", None), ("soon", None)]


@pytest.mark.parametrize("far", [10, 300, 20_000, 2_000_000, 100_000_000])
def test_order_is_by_tick_then_by_when_it_was_set(far: int) -> None:
    """Whichever levels the timers came through, earlier ticks come first, and equals as they were set."""
    wheel = ticks()
    wheel.insert("third", far + 1, None)
    wheel.insert("moved to the end", far, None)
    wheel.insert("first", far, None)
    wheel.advance(far // 2)
    wheel.insert("second", far, None)
    wheel.insert("fourth", far + 1, None)
    wheel.insert("moved to the end", far + 1, None)
    wheel.advance(far - 1)
    wheel.insert("zeroth", far - 1, None)
    names = ["zeroth", "first", "second", "third", "fourth", "moved to the end"]
    assert wheel.advance(far + 1) == [(name, None) for name in names]


@pytest.mark.parametrize("delays", list(itertools.permutations((5, 300, 70_000, 200_000_000), 3)))
def test_a_moved_timer_fires_once_at_the_last_time_set(delays: tuple[int, int, int]) -> None:
    """Set, moved, cancelled and set again, in any level: one firing, at the last time, with the last item."""
    first, second, last = delays
    wheel = ticks()
    wheel.advance(77)
    wheel.insert("timer", 77 + first, "first")
    wheel.insert("timer", 77 + second, "second")
    assert wheel.cancel("timer")
    assert (len(wheel), wheel.next_expiry(), "timer" in wheel) == (0, None, False)
    wheel.insert("timer", 77 + second, "second again")
    wheel.insert("timer", 77 + last, "last")
    fired = [wheel.advance(77 + delay) for delay in sorted({*delays, last - 1, 300_000_000})]
    assert [each for each in fired if each] == [[("timer", "last")]]
    assert fired.index([("timer", "last")]) == sorted({*delays, last - 1, 300_000_000}).index(last)


def test_cancel_tells_whether_there_was_one() -> None:
    """Cancelling twice, or what has fired or never was, finds nothing; what is cancelled never fires."""
    wheel = ticks()
    for number, due in enumerate((1, 500, 10**6, 10**9)):
        wheel.insert(number, due, None)
    assert [wheel.cancel(number) for number in (1, 1, 3, 9)] == [True, False, True, False]
    assert wheel.advance(2 * 10**9) == [(0, None), (2, None)]
    assert not wheel.cancel(0)


def test_next_expiry_is_exact_in_the_lowest_level_and_else_not_too_late() -> None:
    """The answer is the first due time or where its slot begins; a later timer hides no earlier one."""
    wheel = ticks()
    assert wheel.next_expiry() is None
    wheel.insert("later", 200, None)
    wheel.insert("first", 100, None)
    assert wheel.next_expiry() == 100
    wheel.cancel("first")
    assert wheel.next_expiry() == 200
    wheel.insert("later", 1000, None)
    assert wheel.next_expiry() == 768
    assert wheel.advance(768) == []
    assert wheel.next_expiry() == 1000


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"start": math.nan}, "TimingWheel start is nan: give finite seconds."),
        ({"start": -math.inf}, "TimingWheel start is -inf: give finite seconds."),
        ({"tick": 0.0}, "TimingWheel tick is 0.0: give finite seconds above 0."),
        ({"tick": math.inf}, "TimingWheel tick is inf: give finite seconds above 0."),
        ({"levels": ()}, "TimingWheel levels are (): give numbers of slots, each at least 2."),
        ({"levels": (256, 1)}, "TimingWheel levels are (256, 1): give numbers of slots, each at least 2."),
    ],
)
def test_a_wheel_that_cannot_turn_is_refused(arguments: dict[str, Any], text: str) -> None:
    """The error names the setting, its value and what would do."""
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        TimingWheel(**arguments)


@pytest.mark.parametrize("due", [math.nan, math.inf, -math.inf])
def test_a_time_that_never_comes_is_refused_and_changes_nothing(due: float) -> None:
    """A due time that is not finite is an error, and a timer that had this id stays as it was."""
    wheel: TimingWheel[str, str] = TimingWheel()
    wheel.insert("timer", 1.0, "kept")
    with pytest.raises(ValueError, match=rf"^TimingWheel due time is {due!r}: give finite seconds\.$"):
        wheel.insert("timer", due, "refused")
    assert wheel.advance(1.0) == [("timer", "kept")]
