"""What is due after a downtime, what comes next, and the page that says so."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduling import CatchUp, Cron, Due, Grid, Interval, Rule, due, upcoming

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "recurrence.md"
NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
ORDINARY: dict[str, Any] = {"catch_up": CatchUp.ONE, "limit": 100, "grace": 60.0}


def grid(interval: str, anchor: datetime = NOON) -> Grid:
    """Return a grid in UTC."""
    return Grid(Interval.parse(interval), anchor)


def at(clock: str, day: int = 1) -> datetime:
    """Return a moment of July 2026."""
    return datetime.fromisoformat(f"2026-07-{day:02} {clock}+00:00")


@pytest.mark.parametrize("rule", [grid("5m", at("08:00")), Cron("*/5 * * * *")])
def test_a_downtime_of_hours_is_caught_up_by_one_run(rule: Rule) -> None:
    """A 5-minute rule that nobody followed from 10:05 to 12:41:30 runs once, and goes on at 12:45."""
    now = at("12:41:30")
    assert due(rule, at("10:05"), now, **ORDINARY) == Due([at("12:40")], at("12:40"))
    assert due(rule, at("12:40"), now, **ORDINARY) == Due([], at("12:40"))
    assert upcoming(rule, now, 2) == [at("12:45"), at("12:50")]


def test_a_day_of_minutes_is_caught_up_to_the_limit() -> None:
    """After a day of downtime a minutely rule has its 100 newest occurrences, each with its own time, oldest first."""
    now = at("12:00:30", day=2)
    found = due(Cron("* * * * *"), NOON, now, catch_up=CatchUp.ALL, limit=100, grace=60.0)
    assert found.slots == [at("12:00", day=2) - timedelta(minutes=minute) for minute in range(99, -1, -1)]
    assert found.last == at("12:00", day=2)


@pytest.mark.parametrize("catch_up", CatchUp)
def test_a_gap_of_two_seconds_across_a_slot_changes_nothing(catch_up: CatchUp) -> None:
    """A daily rule whose time comes while a new version is deployed runs once, by any policy."""
    rule = Cron("0 9 * * *", "Europe/Paris")
    slot = at("07:00")
    found = due(rule, slot - timedelta(days=1), slot + timedelta(seconds=2), catch_up=catch_up, limit=100, grace=60.0)
    assert found == Due([slot], slot)
    assert due(rule, slot, slot + timedelta(seconds=3), catch_up=catch_up, limit=100, grace=60.0) == Due([], slot)


@pytest.mark.parametrize(
    ("catch_up", "runs"),
    [
        (CatchUp.SKIP, ["12:02", "12:03"]),
        (CatchUp.ONE, ["12:02", "12:03"]),
        (CatchUp.ALL, ["12:01", "12:02", "12:03"]),
    ],
)
def test_what_is_on_time_runs_by_any_policy(catch_up: CatchUp, runs: list[str]) -> None:
    """With 90 s of grace at 12:03:30 those of 12:02 and 12:03 are on time; they stand for the one missed before."""
    found = due(grid("1m"), NOON, at("12:03:30"), catch_up=catch_up, limit=100, grace=90.0)
    assert found == Due([at(clock) for clock in runs], at("12:03"))


@pytest.mark.parametrize(
    ("catch_up", "runs"),
    [(CatchUp.SKIP, []), (CatchUp.ONE, ["12:03"]), (CatchUp.ALL, ["12:01", "12:02", "12:03"])],
)
def test_what_is_missed_runs_by_policy(catch_up: CatchUp, runs: list[str]) -> None:
    """Of what is later than the grace nothing runs, or the latest, or all; the marker moves on whatever runs."""
    found = due(grid("1m"), NOON, at("12:03:30"), catch_up=catch_up, limit=100, grace=29.999)
    assert found == Due([at(clock) for clock in runs], at("12:03"))


@pytest.mark.parametrize("catch_up", CatchUp)
def test_without_grace_a_slot_is_on_time_in_its_own_moment(catch_up: CatchUp) -> None:
    """A grace of 0 leaves the very moment of an occurrence."""
    assert due(grid("1h"), NOON, at("13:00"), catch_up=catch_up, limit=1, grace=0) == Due([at("13:00")], at("13:00"))


@pytest.mark.parametrize("catch_up", CatchUp)
def test_no_policy_returns_more_than_the_limit(catch_up: CatchUp) -> None:
    """A grace that covers more occurrences than the limit does not lift it; the newest ones run."""
    found = due(grid("1s"), NOON, at("12:10:00"), catch_up=catch_up, limit=3, grace=600.0)
    assert found == Due([at("12:09:58"), at("12:09:59"), at("12:10:00")], at("12:10:00"))


@pytest.mark.parametrize("catch_up", CatchUp)
@pytest.mark.parametrize("now", [at("11:00"), at("12:30"), at("12:59:59.999999")])
def test_when_nothing_is_due_the_marker_stays(now: datetime, catch_up: CatchUp) -> None:
    """Between two occurrences, and after a clock was set back, nothing runs and the marker does not move back."""
    assert due(grid("1h", at("00:00")), NOON, now, catch_up=catch_up, limit=9, grace=7200.0) == Due([], NOON)


def test_the_marker_need_not_be_an_occurrence() -> None:
    """A rule that was made at 11:58:30 has its first run at noon."""
    rule = Cron("0 * * * *")
    assert due(rule, at("11:58:30"), at("12:00:01"), **ORDINARY) == Due([NOON], NOON)
    assert due(rule, at("11:58:30"), at("11:59:59"), **ORDINARY) == Due([], at("11:58:30"))


def test_before_its_anchor_a_grid_has_nothing_to_run() -> None:
    """A grid that begins tomorrow is not due today."""
    rule = grid("1s", at("12:00", day=2))
    assert due(rule, at("00:00"), NOON, **ORDINARY) == Due([], at("00:00"))


@pytest.mark.parametrize("catch_up", CatchUp)
def test_a_year_of_seconds_costs_no_more_than_a_minute_of_them(
    catch_up: CatchUp, lines_of: Callable[[Callable[[], object]], int]
) -> None:
    """The work after a downtime is bounded by what may run, not by the 31 million seconds that have passed."""
    rule, now = grid("1s"), NOON + timedelta(days=365)

    def lines(last: datetime) -> int:
        return lines_of(lambda: due(rule, last, now, catch_up=catch_up, limit=20, grace=5.0))

    assert lines(NOON) == lines(now - timedelta(seconds=60)) < 5000


@settings(deadline=None, max_examples=100)
@given(
    rule=st.sampled_from([grid("7s"), grid("1m"), Cron("* * * * *"), Cron("*/7 11,12 * * *", "Asia/Kolkata")]),
    steps=st.lists(st.integers(-30, 900), max_size=20),
    catch_up=st.sampled_from(CatchUp),
    limit=st.integers(1, 20),
    grace=st.integers(0, 300),
)
def test_no_slot_runs_twice_or_out_of_order(
    rule: Rule, steps: list[int], catch_up: CatchUp, limit: int, grace: int
) -> None:
    """However irregularly a rule is followed, runs rise strictly, are occurrences, and none that is on time is lost."""
    last = now = NOON
    ran: list[datetime] = []
    for step in steps:
        now += timedelta(seconds=step)
        found = due(rule, last, now, catch_up=catch_up, limit=limit, grace=grace)
        passed = [slot for slot in upcoming(rule, last, 200) if slot <= now]
        on_time = [slot for slot in passed if now - slot <= timedelta(seconds=grace)]
        missed = passed[: len(passed) - len(on_time)]
        kept = {CatchUp.SKIP: [], CatchUp.ONE: [] if on_time else missed[-1:], CatchUp.ALL: missed}[catch_up]
        assert found == Due((kept + on_time)[-limit:], passed[-1] if passed else last)
        last = found.last
        ran += found.slots
    assert ran == sorted(set(ran))


@pytest.mark.parametrize("rule", [grid("60s", at("12:00:07")), Cron("* * * * *")])
def test_three_hours_of_minutes_have_180_times(rule: Rule) -> None:
    """A loop that loses 0.3 s a turn, with runs by hand at odd times in between, gives each minute its one slot."""
    last, now, slots = NOON + timedelta(seconds=7), NOON + timedelta(seconds=7.1), []
    while len(slots) < 180:
        (following,) = upcoming(rule, now, 1)
        now = following + timedelta(seconds=0.3)
        found = due(rule, last, now, **ORDINARY)
        slots += found.slots
        last = found.last
    (first,) = upcoming(rule, NOON + timedelta(seconds=7), 1)
    assert slots == [first + timedelta(minutes=minute) for minute in range(180)]


def test_what_comes_next_is_listed_in_utc() -> None:
    """A preview has the wanted number of occurrences, the first of them later than the moment."""
    paris = ZoneInfo("Europe/Paris")
    found = upcoming(Cron("0 9 * * 1-5", "Europe/Paris"), datetime(2026, 3, 27, 9, tzinfo=paris), 3)
    assert [f"{moment:%d %H:%M %Z}" for moment in found] == ["30 07:00 UTC", "31 07:00 UTC", "01 07:00 UTC"]
    assert upcoming(grid("1d"), NOON, 0) == []


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"limit": 0}, "Catch-up limit is 0: give a whole number from 1 up."),
        ({"limit": -5}, "Catch-up limit is -5: give a whole number from 1 up."),
        ({"grace": -1.0}, "Catch-up grace is -1.0: give finite seconds from 0 up."),
        ({"grace": float("nan")}, "Catch-up grace is nan: give finite seconds from 0 up."),
        ({"grace": float("inf")}, "Catch-up grace is inf: give finite seconds from 0 up."),
    ],
)
def test_numbers_that_make_no_policy_are_refused(changes: dict[str, Any], text: str) -> None:
    """The error names the number, and says what would do."""
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        due(grid("1d"), NOON, NOON, **ORDINARY | changes)


def test_times_without_a_zone_are_refused() -> None:
    """Neither the marker nor the time of day may be naive."""
    naive = NOON.replace(tzinfo=None)
    for last, now in ((naive, NOON), (NOON, naive)):
        with pytest.raises(ValueError, match=r"^2026-07-01T12:00:00 has no time zone: "):
            due(grid("1d"), last, now, **ORDINARY)


def rows(heading: str) -> list[list[str]]:
    """Return the cells of the table below a heading of the page, without its head."""
    section = PAGE.read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    table = re.findall(r"^\|(.*)\|$", section, re.MULTILINE)
    return [[cell.strip().strip("`") for cell in row.split("|")] for row in table[2:]]


@pytest.mark.parametrize("row", rows("Nights on which clocks change"), ids="|".join)
def test_the_nights_of_the_page_are_real(row: list[str]) -> None:
    """Each row of the page's table has the runs of that rule in the five hours from 23:00 on."""
    zone, evening, text, expected = row
    where = ZoneInfo(zone)
    start = datetime.fromisoformat(f"{evening} 23:00").replace(tzinfo=where).astimezone(UTC)
    interval, _, clock = text.partition(" at ")
    anchor = f"2026-01-01 {clock}"
    rule: Rule = (
        Grid(Interval.parse(interval), datetime.fromisoformat(anchor).replace(tzinfo=where), zone)
        if clock
        else Cron(text, zone)
    )
    following = upcoming(rule, start - timedelta(microseconds=1), 20)
    runs = [run.astimezone(where) for run in following if run < start + timedelta(hours=5)]
    assert (", ".join(f"{run:%H:%M%z}" for run in runs) or "none") == expected


def test_the_example_of_the_page_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    """The Python of `docs/recurrence.md` does what its comments say."""
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    exec(example, {})
    assert capsys.readouterr().out.splitlines() == re.findall(r"# prints: (.*)", example)


def test_the_page_names_every_unit_and_policy() -> None:
    """Units and policies of the code have a row each."""
    assert [row[0] for row in rows("Intervals")] == ["s m h", "d w", "mo y"]
    assert {row[0] for row in rows("Missed runs")} == set(CatchUp)
