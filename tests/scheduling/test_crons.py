"""Cron rules: what is one, when it fires through the nights on which clocks change, and what is refused."""

import dataclasses
import re
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta, timezone
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduling import Cron, InvalidRule, upcoming
from scheduling.crons import ALIASES, SEARCH_YEARS
from tests.scheduling.clocks import NIGHTS, START, TWO_YEARS, ZONES, Fields, occurrences, these

NOW = datetime(2026, 7, 1, 12, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
END = START + timedelta(minutes=TWO_YEARS)

RULES = {
    "30 2 * * *": Fields(these(30), these(2)),
    "30 1 * * *": Fields(these(30), these(1)),
    "45 1 * * *": Fields(these(45), these(1)),
    "0,20,40 1,2,3 * * *": Fields(these(0, 20, 40), these(1, 2, 3)),
    "0 0 * * *": Fields(these(0), these(0)),
    "30 23 * * *": Fields(these(30), these(23)),
    "0 9 * * 1-5": Fields(these(0), these(9), weekdays=these(1, 2, 3, 4, 5)),
    "15 2 * * 0": Fields(these(15), these(2), weekdays=these(0)),
    "0 0 * * 7": Fields(these(0), these(0), weekdays=these(0)),
    "0 0 1 * *": Fields(these(0), these(0), days=these(1)),
    "0 12 31 * *": Fields(these(0), these(12), days=these(31)),
    "0 0 30 2 1": Fields(these(0), these(0), days=these(30), months=these(2), weekdays=these(1)),
    "0 8 13 * 5": Fields(these(0), these(8), days=these(13), weekdays=these(5)),
    "10 0-3 * * *": Fields(these(10), these(0, 1, 2, 3)),
    "0 * * * *": Fields(these(0), wildcard=True),
    "45 */2 * * 0,6": Fields(these(45), frozenset(range(0, 24, 2)), weekdays=these(0, 6), wildcard=True),
    "*/15 0-2,23 * * 0,6": Fields(these(0, 15, 30, 45), these(0, 1, 2, 23), weekdays=these(0, 6), wildcard=True),
    "*/20 2 * * *": Fields(these(0, 20, 40), these(2), wildcard=True),
}
# A third of a million occurrences in five zones: two years of it in the zone with the oddest change alone.
FREQUENT = {"*/15 * * * *": Fields(these(0, 15, 30, 45), wildcard=True), "* * * * *": Fields(wildcard=True)}


def ahead(rule: Cron, start: datetime, end: datetime) -> list[datetime]:
    """Return the occurrences from `start` up to before `end`, each found from the one before it."""
    found, moment = [], rule.after(start - MICROSECOND)
    while moment is not None and moment < end:
        found.append(moment)
        moment = rule.after(moment)
    return found


def back(rule: Cron, start: datetime, end: datetime) -> list[datetime]:
    """Return the same, each found from the one after it."""
    found, moment = [], rule.before(end - MICROSECOND)
    while moment is not None and moment >= start:
        found.append(moment)
        moment = rule.before(moment - MICROSECOND)
    return found[::-1]


@pytest.mark.parametrize("zone", ZONES)
def test_two_years_of_rules_equal_a_watched_clock(zone: str) -> None:
    """Through 2025 and 2026 each rule fires in the minutes in which a clock of the zone says so, and in no other."""
    for expression, expected in occurrences(RULES, zone, START, TWO_YEARS).items():
        assert ahead(Cron(expression, zone), START, END) == expected, expression


def test_two_years_of_quarters_of_an_hour_equal_a_watched_clock() -> None:
    """Where half an hour is skipped and repeated, a quarter-hourly rule fires in every real quarter of an hour."""
    zone, rule = "Australia/Lord_Howe", {"*/15 * * * *": FREQUENT["*/15 * * * *"]}
    expected = occurrences(rule, zone, START, TWO_YEARS)["*/15 * * * *"]
    assert ahead(Cron("*/15 * * * *", zone), START, END) == expected
    assert len(expected) == TWO_YEARS / 15


@pytest.mark.parametrize(("zone", "night"), NIGHTS.values(), ids=NIGHTS)
def test_rules_equal_a_watched_clock_backwards_too(zone: str, night: datetime) -> None:
    """Around each night on which clocks change, the occurrences found backwards are those found forwards."""
    start, end = night - timedelta(hours=12), night + timedelta(hours=24)
    for expression, expected in occurrences(RULES | FREQUENT, zone, start, 36 * 60).items():
        rule = Cron(expression, zone)
        assert ahead(rule, start, end) == back(rule, start, end) == expected, expression


@st.composite
def rules(draw: st.DrawFn) -> tuple[str, Fields]:
    """A cron rule with its meaning, mostly about the hours in which clocks change."""
    minutes = draw(st.sets(st.sampled_from([0, 1, 15, 29, 30, 31, 45, 59]), min_size=1))
    hours = draw(st.sets(st.sampled_from([0, 1, 2, 3, 4, 22, 23]), min_size=1))
    weekdays = draw(st.none() | st.sets(st.integers(0, 6), min_size=1))
    star = draw(st.sampled_from(["", "minute", "hour"]))
    texts = [",".join(map(str, sorted(numbers or ()))) or "*" for numbers in (minutes, hours, weekdays)]
    fields = Fields(frozenset(minutes), frozenset(hours), weekdays=frozenset(weekdays) if weekdays else None)
    if star == "minute":
        texts[0] = "*/10"
        fields = dataclasses.replace(fields, minutes=frozenset(range(0, 60, 10)), wildcard=True)
    if star == "hour":
        texts[1] = "*"
        fields = dataclasses.replace(fields, hours=frozenset(range(24)), wildcard=True)
    return f"{texts[0]} {texts[1]} * * {texts[2]}", fields


@settings(deadline=None, max_examples=60)
@given(rule=rules(), night=st.sampled_from([*NIGHTS.values()]), seconds=st.lists(st.integers(-40_000, 40_000)))
def test_any_rule_equals_a_watched_clock_from_any_moment(
    rule: tuple[str, Fields], night: tuple[str, datetime], seconds: list[int]
) -> None:
    """From any moment near a change, the next occurrence and the last one are those of a watched clock."""
    (expression, fields), (zone, change) = rule, night
    start = change - timedelta(days=8)
    expected = occurrences({expression: fields}, zone, start, 16 * 1440)[expression]
    cron = Cron(expression, zone)
    for moment in [change, *(change + timedelta(seconds=second, microseconds=second % 7) for second in seconds)]:
        assert cron.after(moment) == min((slot for slot in expected if slot > moment), default=None)
        assert cron.before(moment) == max((slot for slot in expected if slot <= moment), default=None)


@settings(deadline=None, max_examples=100)
@given(
    expression=st.sampled_from([*RULES, "0 0 29 2 *", "0 0 L * *", "0 0 LW * *", "0 0 * * 5L", "0 0 * * MON#1"]),
    zone=st.sampled_from(ZONES),
    moment=st.datetimes(datetime(1990, 1, 1), datetime(2090, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
)
def test_before_and_after_are_inverse(expression: str, zone: str, moment: datetime) -> None:
    """Occurrences rise strictly, and looking back from one or from just before it finds it or the one before."""
    rule = Cron(expression, zone)
    first, second, third = upcoming(rule, moment, 3)
    assert moment < first < second < third
    assert rule.before(second) == second
    assert rule.before(second - MICROSECOND) == first
    last = rule.before(moment)
    assert last is not None
    assert last <= moment
    assert rule.after(last) == first


def test_the_night_of_los_angeles_2022() -> None:
    """From the first pass of 01:18 on a quarter-hourly rule fires in each real quarter, and 01:30 comes once."""
    moment = datetime(2022, 11, 6, 1, 18, tzinfo=ZoneInfo("America/Los_Angeles"))
    quarters = upcoming(Cron("*/15 * * * *", "America/Los_Angeles"), moment, 12)
    assert quarters[0] == datetime(2022, 11, 6, 8, 30, tzinfo=UTC)
    assert {later - slot for slot, later in pairwise(quarters)} == {timedelta(minutes=15)}
    assert upcoming(Cron("30 1 * * *", "America/Los_Angeles"), moment, 2) == [
        datetime(2022, 11, 6, 8, 30, tzinfo=UTC),
        datetime(2022, 11, 7, 9, 30, tzinfo=UTC),
    ]


def test_the_second_pass_of_a_repeated_hour_has_no_fixed_times() -> None:
    """A time that was due in the first pass is neither due again in the second nor found later than it was."""
    second_pass = datetime(2022, 11, 6, 9, 10, tzinfo=UTC)
    rule = Cron("30 1 * * *", "America/Los_Angeles")
    assert rule.after(second_pass) == datetime(2022, 11, 7, 9, 30, tzinfo=UTC)
    assert rule.before(second_pass) == datetime(2022, 11, 6, 8, 30, tzinfo=UTC)


@pytest.mark.parametrize("offset", [-12, 0, 5, 14])
def test_a_moment_may_be_in_any_zone(offset: int) -> None:
    """The same instant, however written, has the same next occurrence, which is in UTC."""
    moment = NOW.astimezone(timezone(timedelta(hours=offset)))
    found = Cron("0 9 * * *", "Europe/Paris").after(moment)
    assert found == datetime(2026, 7, 2, 7, tzinfo=UTC)
    assert found.tzinfo is UTC


def test_an_occurrence_is_later_than_the_moment() -> None:
    """At the moment of an occurrence the next one is asked for, and a microsecond before it that one."""
    rule = Cron("0 12 * * *")
    assert rule.after(NOW) == NOW + timedelta(days=1)
    assert rule.after(NOW - MICROSECOND) == NOW
    assert rule.before(NOW) == NOW
    assert rule.before(NOW - MICROSECOND) == NOW - timedelta(days=1)


@pytest.mark.parametrize(
    ("alias", "next_times"),
    [
        ("@hourly", ["2026-07-01 13:00", "2026-07-01 14:00"]),
        ("@daily", ["2026-07-02 00:00", "2026-07-03 00:00"]),
        ("@midnight", ["2026-07-02 00:00", "2026-07-03 00:00"]),
        ("@weekly", ["2026-07-05 00:00", "2026-07-12 00:00"]),
        ("@monthly", ["2026-08-01 00:00", "2026-09-01 00:00"]),
        ("@yearly", ["2027-01-01 00:00", "2028-01-01 00:00"]),
        (" @Annually ", ["2027-01-01 00:00", "2028-01-01 00:00"]),
    ],
)
def test_an_alias_stands_for_a_rule(alias: str, next_times: list[str]) -> None:
    """Each alias fires when its name says, however it is written."""
    assert [f"{moment:%Y-%m-%d %H:%M}" for moment in upcoming(Cron(alias), NOW, 2)] == next_times


@pytest.mark.parametrize(
    ("expression", "next_times"),
    [
        ("0 0 L * *", ["07-31", "08-31", "09-30"]),
        ("0 0 LW * *", ["07-31", "08-31", "09-30"]),
        ("0 0 * * 5L", ["07-31", "08-28", "09-25"]),
        ("0 0 * * MON#1", ["07-06", "08-03", "09-07"]),
        ("0 0 * jul-aug sun", ["07-05", "07-12", "07-19"]),
        ("0 0 */10 * 1", ["08-31", "09-21", "12-21"]),
        ("0 0 30 2 1", ["02-01", "02-08", "02-15"]),
    ],
)
def test_what_a_field_may_say(expression: str, next_times: list[str]) -> None:
    """Last days, last and numbered weekdays and names are read; a day or a weekday will do, unless one has a star."""
    assert [f"{moment:%m-%d}" for moment in upcoming(Cron(expression), NOW, 3)] == next_times


@pytest.mark.parametrize(
    ("expression", "zone"),
    [
        ("0 0 31 2 *", "UTC"),
        ("0 0 31 4,6 *", "UTC"),
        ("0 0 30 2 */2", "UTC"),
        ("* * */20 * 1L", "UTC"),
        ("* 2 * 3 0L", "Europe/Paris"),
        ("*/5 2 * 3 0#2", "America/Los_Angeles"),
    ],
)
def test_a_rule_that_never_fires_is_refused_at_once(expression: str, zone: str) -> None:
    """Dates that no month has, and times that are in a gap each year, cost less than 100 ms to find out."""
    started = time.process_time()
    with pytest.raises(InvalidRule, match=rf"^Cron rule '{re.escape(expression)}' never fires.*exist\.$"):
        Cron(expression, zone)
    assert time.process_time() - started < 0.1


def test_a_rule_of_one_zone_may_never_fire_in_another() -> None:
    """The hour that Paris leaves out on the last Sunday of March is there in Kolkata, and as a fixed time in Paris."""
    assert Cron("* 2 * 3 0L", "Asia/Kolkata").after(NOW)
    assert Cron("0 2 * 3 0L", "Europe/Paris").after(NOW) == datetime(2027, 3, 28, 1, tzinfo=UTC)


def test_no_valid_rule_waits_as_long_as_a_search() -> None:
    """In the 400 years after which the calendar repeats, no date with a weekday is away for more than 40 years."""
    last: dict[tuple[int, int, int], int] = {}
    longest = 0
    for ordinal in range(date(2000, 1, 1).toordinal(), date(2800, 1, 1).toordinal()):
        day = date.fromordinal(ordinal)
        key = (day.month, day.day, day.weekday())
        longest = max(longest, day.year - last.get(key, day.year))
        last[key] = day.year
    assert longest == 40 < SEARCH_YEARS
    assert len(last) == 366 * 7


def test_the_rarest_rule_is_found() -> None:
    """The 29th of February as a Sunday, which the year 2100 puts off for 40 years, is found from either side."""
    rule = Cron("0 0 29 2 */7")
    assert rule.after(datetime(2088, 3, 1, tzinfo=UTC)) == datetime(2128, 2, 29, tzinfo=UTC)
    assert rule.before(datetime(2128, 2, 28, tzinfo=UTC)) == datetime(2088, 2, 29, tzinfo=UTC)


FIVE = "give five, for minute, hour, day of month, month and day of week; for seconds use an interval such as 30s."
HOW = ", alone, in a list such as 1,2, in a range such as 1-5, or with a step such as */5."


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("", f"Cron rule '' has 0 fields: {FIVE}"),
        ("0 9 * *", f"Cron rule '0 9 * *' has 4 fields: {FIVE}"),
        ("0 0 9 * * *", f"Cron rule '0 0 9 * * *' has 6 fields: {FIVE}"),
        ("@reboot", f"Cron rule '@reboot' is unknown: give five fields or one of {', '.join(ALIASES)}."),
        ("60 * * * *", f"Cron rule '60 * * * *' has a bad minute, '60': give * or 0-59{HOW}"),
        ("0 9-8 * * *", f"Cron rule '0 9-8 * * *' has a bad hour, '9-8': give * or 0-23{HOW}"),
        ("0 0 32 * *", f"Cron rule '0 0 32 * *' has a bad day-of-month, '32': give * or 1-31, L or LW{HOW}"),
        ("0 0 * */0 *", f"Cron rule '0 0 * */0 *' has a bad month, '*/0': give * or 1-12 or JAN-DEC{HOW}"),
        (
            "0 0 * * MON-8",
            f"Cron rule '0 0 * * MON-8' has a bad day-of-week, 'MON-8': give * or 0-7 or SUN-SAT, 5L or MON#1{HOW}",
        ),
        ("1" * 501, f"Cron rule '{'1' * 40}'... is longer than 500 characters: use ranges and steps."),
    ],
)
def test_what_is_no_rule_is_refused(expression: str, text: str) -> None:
    """The error names the rule, what is wrong with it, and what would do."""
    with pytest.raises(InvalidRule, match=f"^{re.escape(text)}$"):
        Cron(expression)


def test_all_minutes_and_hours_one_by_one_are_not_too_long() -> None:
    """The limit on length leaves room for the longest list of every field."""
    fields = [range(60), range(24), range(1, 32), range(1, 13), range(8)]
    expression = " ".join(",".join(map(str, numbers)) for numbers in fields)
    assert Cron(expression).after(NOW) == NOW + timedelta(minutes=1)


@settings(deadline=None, max_examples=300)
@given(st.text(alphabet="0123456789*/,-#LWMON @", max_size=30) | st.text(max_size=20))
def test_any_text_is_a_rule_or_refused(text: str) -> None:
    """Whatever somebody types is read, or refused by an error of ours."""
    with suppress(InvalidRule):
        assert Cron(text).after(NOW)


@pytest.mark.parametrize("call", [Cron("0 9 * * *").after, Cron("0 9 * * *").before])
def test_a_moment_without_a_zone_is_refused(call: Callable[[datetime], object]) -> None:
    """A naive datetime is an error of the caller, not of the rule."""
    text = "2026-07-01T12:00:00 has no time zone: give an aware datetime, such as one in UTC."
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$") as caught:
        call(NOW.replace(tzinfo=None))
    assert not isinstance(caught.value, InvalidRule)


def test_beyond_the_years_that_count_there_is_nothing() -> None:
    """After the year 2999 there is no next time, and a moment outside 1900 to 2999 is refused."""
    rule = Cron("0 0 1 1 *")
    assert rule.after(datetime(2999, 1, 1, tzinfo=UTC)) is None
    for year in (1899, 3000, 1, 9999):
        with pytest.raises(ValueError, match=rf"^{year:04}-06-01.* is too far away: give a year from 1900 to 2999\.$"):
            rule.after(datetime(year, 6, 1, tzinfo=UTC))


def test_a_cron_rule_is_a_value() -> None:
    """Equal rules are equal and usable as keys, and nobody can change one afterwards."""
    assert len({Cron("0 9 * * *"), Cron("0 9 * * *", "UTC"), Cron("0 9 * * *", "Europe/Paris")}) == 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        Cron("0 9 * * *").zone = "Europe/Paris"
