"""Intervals and their grid: units, month ends, anchors, and the nights on which clocks change."""

import calendar
import dataclasses
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduling import Grid, Interval, InvalidRule, upcoming
from tests.scheduling.clocks import NIGHTS, START, TWO_YEARS, ZONES, arrivals

quick = settings(deadline=None, max_examples=200)

MICROSECOND = timedelta(microseconds=1)
END = START + timedelta(minutes=TWO_YEARS)
PARIS = ZoneInfo("Europe/Paris")
UNITS = ["s", "m", "h", "d", "w", "mo", "y"]

intervals = st.builds(Interval, count=st.integers(1, 40), unit=st.sampled_from(UNITS))
zones = st.sampled_from([*ZONES, "UTC"])
moments = st.datetimes(datetime(2000, 1, 1), datetime(2060, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
grids = st.builds(Grid, interval=intervals, anchor=moments, zone=zones)


def ahead(grid: Grid, end: datetime) -> Iterator[datetime]:
    """Yield the occurrences up to before `end`, each found from the one before it."""
    found = grid.after(grid.anchor - MICROSECOND)
    while found is not None and found < end:
        yield found
        found = grid.after(found)


def back(grid: Grid, end: datetime) -> Iterator[datetime]:
    """Yield the same from the last to the first, each found from the one after it."""
    found = grid.before(end - MICROSECOND)
    while found is not None:
        yield found
        found = grid.before(found - MICROSECOND)


def days(first: datetime, step: int) -> list[datetime]:
    """Return two years of local times, a number of days apart."""
    return [first + timedelta(days=day) for day in range(0, 731, step)]


def months(first: datetime, day: int) -> list[datetime]:
    """Return two years of local times, a month apart, on a day of the month or the last one that it has."""
    dates = [(2025 + month // 12, month % 12 + 1) for month in range(24)]
    return [
        first.replace(year=year, month=month, day=min(day, calendar.monthrange(year, month)[1]))
        for year, month in dates
    ]


@pytest.mark.parametrize("zone", ZONES)
def test_two_years_of_calendar_steps_equal_a_watched_clock(zone: str) -> None:
    """Through 2025 and 2026 days, weeks and months keep their local time; in a gap its end, repeated the first."""
    wanted = {}
    for hour in (0, 1, 2, 9):
        first = datetime(2025, 1, 5, hour, 30)  # noqa: DTZ001
        wanted |= {f"1d {hour}": days(first, 1), f"1w {hour}": days(first, 7), f"1mo {hour}": months(first, 31)}
    for name, expected in arrivals(wanted, zone, START, TWO_YEARS).items():
        grid = Grid(Interval.parse(name.split()[0]), wanted[name][0].replace(tzinfo=ZoneInfo(zone)), zone)
        assert list(ahead(grid, END)) == list(back(grid, END))[::-1] == expected, name


@pytest.mark.parametrize("zone", ["Europe/Paris", "Australia/Lord_Howe"])
def test_two_years_of_quarters_of_an_hour_are_real_ones(zone: str) -> None:
    """Hours and less are elapsed time: no zone and no night makes a difference."""
    grid = Grid(Interval.parse("15m"), START, zone)
    assert list(ahead(grid, END)) == [START + timedelta(minutes=minute) for minute in range(0, TWO_YEARS, 15)]


def test_fifteen_minutes_go_through_the_night_of_los_angeles_2022() -> None:
    """After a run in the first pass of 01:18 there is one in each real quarter of an hour."""
    last = datetime(2022, 11, 6, 1, 18, tzinfo=ZoneInfo("America/Los_Angeles"))
    found = upcoming(Grid(Interval.parse("15m"), last, "America/Los_Angeles"), last, 12)
    assert found == [last.astimezone(UTC) + timedelta(minutes=15 * number) for number in range(1, 13)]
    assert Interval.parse("15m").after(last, "America/Los_Angeles") == found[0]


@pytest.mark.parametrize("text", ["1s", "30s", "5m", "2h", "1d", "1w", "1mo", "1y", "100y", "3155760000s"])
def test_an_interval_is_read_and_written_alike(text: str) -> None:
    """What is read is written the same way."""
    assert str(Interval.parse(text)) == text


@quick
@given(intervals)
def test_every_interval_survives_writing(interval: Interval) -> None:
    """An interval that was written and read again is the same."""
    assert Interval.parse(str(interval)) == interval


@pytest.mark.parametrize(
    "text",
    [
        *["", "5", "m", "0m", "-5m", "+5m", "1.5h", "1h30m", "5 m", " 5m", "5m\n", "5M", "5min", "5x", "٣m", "1e3s"],
        *["101y", "1201mo", "5218w", "36526d", "876601h", "52596001m", "3155760001s", "99999999999s"],
    ],
)
def test_what_is_no_interval_is_refused(text: str) -> None:
    """The error names the text, and says what would do."""
    way_out = "give a whole number and one unit of s, m, h, d, w, mo or y, from 1s to 100y, such as 90m."
    with pytest.raises(InvalidRule, match=f"^{re.escape(f'Interval {text!r} is not one: {way_out}')}$"):
        Interval.parse(text)


def test_a_long_text_is_cut_in_its_error() -> None:
    """The error shows the beginning of what somebody pasted."""
    with pytest.raises(InvalidRule, match=f"^Interval '{'9' * 40}' is not one"):
        Interval.parse("9" * 100_000)


def test_an_interval_of_numbers_is_checked_too() -> None:
    """An interval made of parts has the limits of one that is read."""
    with pytest.raises(InvalidRule, match=r"^Interval '0d' is not one"):
        Interval(0, "d")
    with pytest.raises(InvalidRule, match=r"^Interval '3fortnights' is not one"):
        Interval(3, "fortnights")


@pytest.mark.parametrize(
    ("text", "moment", "expected"),
    [
        ("30s", "2026-03-29 01:59:45+01:00", "2026-03-29 03:00:15+02:00"),
        ("24h", "2026-03-28 09:00+01:00", "2026-03-29 10:00+02:00"),
        ("1d", "2026-03-28 09:00+01:00", "2026-03-29 09:00+02:00"),
        ("1d", "2026-03-28 02:30+01:00", "2026-03-29 03:00+02:00"),
        ("1d", "2026-10-24 02:30+02:00", "2026-10-25 02:30+02:00"),
        ("1d", "2026-10-25 02:30+01:00", "2026-10-26 02:30+01:00"),
        ("1w", "2026-10-24 09:00+02:00", "2026-10-31 09:00+01:00"),
        ("1mo", "2026-01-31 09:00+01:00", "2026-02-28 09:00+01:00"),
        ("1mo", "2028-01-30 09:00+01:00", "2028-02-29 09:00+01:00"),
        ("13mo", "2026-12-31 09:00+01:00", "2028-01-31 09:00+01:00"),
        ("1y", "2028-02-29 09:00+01:00", "2029-02-28 09:00+01:00"),
        ("100y", "2026-07-01 09:00:00.000007+02:00", "2126-07-01 09:00:00.000007+02:00"),
    ],
)
def test_one_interval_after_a_moment(text: str, moment: str, expected: str) -> None:
    """Hours elapse; days and longer keep the time of day in Paris, and end with a month that is too short."""
    found = Interval.parse(text).after(datetime.fromisoformat(moment), "Europe/Paris")
    assert found == datetime.fromisoformat(expected)
    assert found.tzinfo is UTC


def test_without_a_zone_the_calendar_is_that_of_utc() -> None:
    """A month after the evening of 31 January in UTC is the evening of 28 February in UTC."""
    moment = datetime(2026, 1, 31, 23, 30, tzinfo=UTC)
    assert Interval.parse("1mo").after(moment) == datetime(2026, 2, 28, 23, 30, tzinfo=UTC)
    assert Interval.parse("1mo").after(moment, "Europe/Paris") == datetime(2026, 2, 28, 23, 30, tzinfo=UTC)
    assert Interval.parse("1mo").after(moment, "Asia/Kolkata") == datetime(2026, 2, 28, 23, 30, tzinfo=UTC)


def test_month_ends_keep_the_day_of_the_anchor() -> None:
    """From 31 January on, each month has its run on the 31st or on the last day that it has."""
    anchor = datetime(2027, 1, 31, 8, tzinfo=PARIS)
    found = upcoming(Grid(Interval.parse("1mo"), anchor, "Europe/Paris"), anchor, 14)
    local = [f"{moment.astimezone(PARIS):%y-%m-%d %H}" for moment in found]
    assert local == [
        *["27-02-28 08", "27-03-31 08", "27-04-30 08", "27-05-31 08", "27-06-30 08", "27-07-31 08", "27-08-31 08"],
        *["27-09-30 08", "27-10-31 08", "27-11-30 08", "27-12-31 08", "28-01-31 08", "28-02-29 08", "28-03-31 08"],
    ]


def test_the_29th_of_february_comes_back() -> None:
    """A year after 29 February is 28 February, and four years after it 29 February; 2100 has none."""
    anchor = datetime(2092, 2, 29, tzinfo=UTC)
    found = upcoming(Grid(Interval.parse("1y"), anchor), anchor, 12)
    assert [moment.day for moment in found] == [28, 28, 28, 29, 28, 28, 28, 28, 28, 28, 28, 29]
    assert [moment.year for moment in found] == list(range(2093, 2105))
    assert {moment.month for moment in found} == {2}


def test_180_runs_that_cost_time_stay_on_the_grid() -> None:
    """A run each minute that takes 20 s, in a loop that loses 0.3 s a turn, leaves no minute out and never drifts."""
    anchor = datetime(2026, 7, 1, 12, 0, 7, 250_000, tzinfo=UTC)
    grid = Grid(Interval.parse("60s"), anchor)
    now, slots = anchor, []
    for _ in range(180):
        slot = grid.after(now)
        assert slot is not None
        slots.append(slot)
        now = max(now, slot) + timedelta(seconds=20.3)
    assert slots == [anchor + timedelta(minutes=number) for number in range(1, 181)]


def test_a_grid_begins_at_its_anchor() -> None:
    """The anchor is the first occurrence, and there is none before it."""
    anchor = datetime(2026, 7, 1, 12, tzinfo=UTC)
    for unit in UNITS:
        grid = Grid(Interval(1, unit), anchor)
        assert grid.after(datetime(1900, 1, 1, tzinfo=UTC)) == grid.after(anchor - MICROSECOND) == anchor
        assert grid.before(anchor) == anchor
        assert grid.before(anchor - MICROSECOND) is None
        second = grid.after(anchor)
        assert second is not None
        assert second > anchor


def test_an_anchor_in_the_second_pass_stays_there() -> None:
    """An anchor at the second 02:30 of a night occurs then and not an hour before; the next day has only one."""
    anchor = datetime(2026, 10, 25, 2, 30, tzinfo=PARIS, fold=1)
    grid = Grid(Interval.parse("1d"), anchor, "Europe/Paris")
    assert list(ahead(grid, datetime(2026, 10, 27, tzinfo=UTC))) == [
        datetime(2026, 10, 25, 1, 30, tzinfo=UTC),
        datetime(2026, 10, 26, 1, 30, tzinfo=UTC),
    ]
    assert grid.before(anchor - MICROSECOND) is None


def test_from_the_second_pass_the_next_is_tomorrow() -> None:
    """A daily 02:30 has passed when clocks are set back behind it."""
    grid = Grid(Interval.parse("1d"), datetime(2026, 10, 1, 2, 30, tzinfo=PARIS), "Europe/Paris")
    second_pass = datetime(2026, 10, 25, 2, 10, tzinfo=PARIS, fold=1)
    assert grid.after(second_pass) == datetime(2026, 10, 26, 1, 30, tzinfo=UTC)
    assert grid.before(second_pass) == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)


def test_two_occurrences_that_fall_together_are_one() -> None:
    """Apia left out 30 December 2011: its midnight and the next one are the same moment, which occurs once."""
    zone = ZoneInfo("Pacific/Apia")
    grid = Grid(Interval.parse("1d"), datetime(2011, 12, 28, tzinfo=zone), "Pacific/Apia")
    end = datetime(2012, 1, 2, tzinfo=UTC)
    local = [f"{moment.astimezone(zone):%d %H:%M}" for moment in ahead(grid, end)]
    assert local == ["28 00:00", "29 00:00", "31 00:00", "01 00:00", "02 00:00"]
    assert list(back(grid, end))[::-1] == list(ahead(grid, end))


@pytest.mark.parametrize(("zone", "night"), NIGHTS.values(), ids=NIGHTS)
def test_each_time_of_day_equals_a_watched_clock_around_a_change(zone: str, night: datetime) -> None:
    """A daily grid at any quarter of an hour meets the watched clock in the days around a change."""
    start, length = night - timedelta(days=3), 6 * 1440
    midnight = (night.astimezone(ZoneInfo(zone)) - timedelta(days=2)).replace(hour=0, minute=0)
    anchors = {str(minute): midnight + timedelta(minutes=minute) for minute in range(0, 1440, 15)}
    wanted = {
        name: [anchor.replace(tzinfo=None) + timedelta(days=day) for day in range(5)]
        for name, anchor in anchors.items()
    }
    for name, expected in arrivals(wanted, zone, start, length).items():
        grid = Grid(Interval.parse("1d"), anchors[name], zone)
        assert list(ahead(grid, expected[-1] + MICROSECOND)) == expected
        assert list(back(grid, expected[-1] + MICROSECOND)) == expected[::-1]


@quick
@given(grid=grids, moment=moments)
def test_before_and_after_are_inverse(grid: Grid, moment: datetime) -> None:
    """Occurrences rise strictly, and looking back from one or from just before it finds it or the one before."""
    first, second, third = upcoming(grid, moment, 3)
    assert moment < first < second < third
    assert grid.before(second) == second
    assert grid.before(second - MICROSECOND) == first
    last = grid.before(moment)
    if moment < grid.anchor:
        assert (last, first) == (None, grid.anchor)
    else:
        assert last is not None
        assert last <= moment
        assert grid.after(last) == first


@quick
@given(grid=grids, steps=st.integers(0, 20))
def test_no_occurrence_is_left_out(grid: Grid, steps: int) -> None:
    """Stepping from one to the next arrives where counting from the anchor does."""
    stepped = upcoming(grid, grid.anchor, steps)
    counted = [grid.interval.after(grid.anchor, grid.zone, number) for number in range(1, steps + 1)]
    assert stepped == counted


@pytest.mark.parametrize("unit", UNITS)
def test_the_next_occurrence_costs_no_more_after_900_years(
    unit: str, lines_of: Callable[[Callable[[], object]], int]
) -> None:
    """A grid is computed, not walked: no call costs more when its anchor lies far back."""
    grid = Grid(Interval(1, unit), datetime(2000, 1, 31, 9, 30, tzinfo=UTC), "Europe/Paris")
    near, far = datetime(2000, 8, 1, tzinfo=UTC), datetime(2900, 8, 1, tzinfo=UTC)
    for call in (grid.after, grid.before):
        assert lines_of(lambda call=call: call(far)) < 500
        assert lines_of(lambda call=call: call(near)) < 500


@pytest.mark.parametrize(
    ("anchor", "text"),
    [
        (
            datetime(2026, 7, 1, 9),  # noqa: DTZ001
            "Anchor 2026-07-01T09:00:00 has no time zone: give an aware datetime, such as one in UTC.",
        ),
        (datetime.max.replace(tzinfo=UTC), "Anchor 9999-12-31T23:59:59.999999+00:00 is too far away: give a year from"),
        (datetime.min.replace(tzinfo=UTC), "Anchor 0001-01-01T00:00:00+00:00 is too far away: give a year from 1900"),
    ],
)
def test_an_anchor_that_makes_no_grid_is_refused(anchor: datetime, text: str) -> None:
    """An anchor needs a zone and a year in which anything happens."""
    with pytest.raises(InvalidRule, match=f"^{re.escape(text)}"):
        Grid(Interval.parse("1d"), anchor)


@pytest.mark.parametrize("name", ["Europe/Pairs", "europe/paris", "", "Europe", "../etc/passwd", "localtime", "A\0B"])
def test_an_unknown_zone_is_refused_by_name(name: str) -> None:
    """The error shows the name; what each machine calls local is no zone either."""
    text = f"Time zone {name!r} is unknown: give an IANA name such as 'Europe/Paris', or 'UTC'."
    with pytest.raises(InvalidRule, match=f"^{re.escape(text)}$"):
        Grid(Interval.parse("1d"), START, name)
    with pytest.raises(InvalidRule, match=f"^{re.escape(text)}$"):
        Interval.parse("1s").after(START, name)


def test_a_moment_without_a_zone_is_refused() -> None:
    """A naive datetime is an error of the caller, not of the rule."""
    naive = datetime(2026, 7, 1, 9)  # noqa: DTZ001
    grid = Grid(Interval.parse("1d"), START)
    for call in (grid.after, grid.before, Interval.parse("1s").after):
        with pytest.raises(ValueError, match=r"^2026-07-01T09:00:00 has no time zone: give an aware") as caught:
            call(naive)
        assert not isinstance(caught.value, InvalidRule)


def test_a_grid_ends_with_the_years_that_count() -> None:
    """After the year 2999 there is no next occurrence."""
    grid = Grid(Interval.parse("100y"), datetime(2950, 1, 1, tzinfo=UTC))
    assert upcoming(grid, START, 5) == [grid.anchor]


def test_a_grid_is_a_value() -> None:
    """Grids with the same anchor, in whichever zone it is written, are equal, and nobody can change one."""
    anchor = datetime(2026, 7, 1, 12, tzinfo=UTC)
    grid = Grid(Interval.parse("1d"), anchor)
    assert {grid, Grid(Interval(1, "d"), anchor.astimezone(PARIS))} == {grid}
    with pytest.raises(dataclasses.FrozenInstanceError):
        grid.zone = "Europe/Paris"
