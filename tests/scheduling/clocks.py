"""What the tests of recurrence compare with: clocks watched minute by minute, and rules matched by hand.

Nothing here uses the product, cronsim or dateutil. A clock is watched over real minutes in UTC. A time of day counts
as reached in the first minute in which the clock shows it or, having jumped, a later one; so what a gap skips is
reached at its end, and what is repeated was reached in the first pass.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

ZONES = ["Europe/Paris", "America/Los_Angeles", "Australia/Lord_Howe", "America/Santiago", "Asia/Kolkata"]

# Nights on which clocks change, as the hour in UTC before which that happens.
NIGHTS = {
    "Paris, forward": ("Europe/Paris", datetime(2026, 3, 29, 1, tzinfo=UTC)),
    "Paris, back": ("Europe/Paris", datetime(2026, 10, 25, 1, tzinfo=UTC)),
    "Los Angeles, forward": ("America/Los_Angeles", datetime(2026, 3, 8, 10, tzinfo=UTC)),
    "Los Angeles, back": ("America/Los_Angeles", datetime(2022, 11, 6, 9, tzinfo=UTC)),
    "Lord Howe, forward": ("Australia/Lord_Howe", datetime(2026, 10, 3, 15, 30, tzinfo=UTC)),
    "Lord Howe, back": ("Australia/Lord_Howe", datetime(2026, 4, 4, 15, tzinfo=UTC)),
    "Santiago, forward at midnight": ("America/Santiago", datetime(2026, 9, 6, 4, tzinfo=UTC)),
    "Santiago, back at midnight": ("America/Santiago", datetime(2026, 4, 5, 3, tzinfo=UTC)),
    "Troll, two hours forward": ("Antarctica/Troll", datetime(2026, 3, 29, 1, tzinfo=UTC)),
    "Troll, two hours back": ("Antarctica/Troll", datetime(2026, 10, 25, 1, tzinfo=UTC)),
    "Apia, a day left out": ("Pacific/Apia", datetime(2011, 12, 30, 10, tzinfo=UTC)),
    "Kolkata, nothing": ("Asia/Kolkata", datetime(2026, 3, 29, 1, tzinfo=UTC)),
}

START = datetime(2025, 1, 1, tzinfo=UTC)
EPOCH = date(1970, 1, 1)
TWO_YEARS = 2 * 365 * 1440  # 2025 and 2026, in minutes


@dataclass(frozen=True)
class Fields:
    """A cron rule by its meaning. A day or weekday that is None is a `*`; weekdays count from Sunday, which is 0."""

    minutes: frozenset[int] = frozenset(range(60))
    hours: frozenset[int] = frozenset(range(24))
    days: frozenset[int] | None = None
    months: frozenset[int] = frozenset(range(1, 13))
    weekdays: frozenset[int] | None = None
    wildcard: bool = False

    def has_time(self, minute: int) -> bool:
        """Whether the rule occurs at a minute of the day."""
        return minute // 60 in self.hours and minute % 60 in self.minutes

    def has_date(self, day: date) -> bool:
        """Whether the rule occurs on a day; by the day of the month or the weekday, where both are given."""
        if day.month not in self.months:
            return False
        wanted = [day.day in self.days] if self.days is not None else []
        wanted += [day.isoweekday() % 7 in self.weekdays] if self.weekdays is not None else []
        return any(wanted) or not wanted


def these(*numbers: int) -> frozenset[int]:
    """Return a set of numbers."""
    return frozenset(numbers)


@cache
def watched(zone: str, start: datetime, minutes: int) -> list[int]:
    """Return what a clock shows in each minute from `start` on, in minutes since `start` was shown in UTC."""
    where, first = ZoneInfo(zone), int(start.timestamp())
    shown, known, ahead = [], timedelta(), 0
    for number in range(minutes):
        offset = datetime.fromtimestamp(first + 60 * number, where).utcoffset() or timedelta()
        if offset is not known:
            known, ahead = offset, offset // timedelta(minutes=1)
        shown.append(number + ahead)
    return shown


def reached(zone: str, start: datetime, minutes: int) -> Iterator[tuple[int, int, range]]:
    """Yield for each real minute its number, what the clock shows, and the times of day that it has newly reached."""
    shown = watched(zone, start, minutes)
    highest = shown[0] - 1
    for number, local in enumerate(shown):
        yield number, local, range(highest + 1, local + 1)
        highest = max(highest, local)


def occurrences(rules: dict[str, Fields], zone: str, start: datetime, minutes: int) -> dict[str, list[datetime]]:
    """Return when each rule occurs: a wildcard when its local time is shown, others when that is reached."""
    timed = [[name for name, rule in rules.items() if rule.has_time(minute)] for minute in range(1440)]
    found: dict[str, list[datetime]] = {name: [] for name in rules}
    midnight = int(start.timestamp()) // 60
    for number, local, new in reached(zone, start, minutes):
        if len(new) <= 1 and not timed[(local + midnight) % 1440]:
            continue
        occurring = {
            name
            for time in {*new, local}
            for name in timed[(time + midnight) % 1440]
            if (time == local if rules[name].wildcard else time in new)
            and rules[name].has_date(EPOCH + timedelta(days=(time + midnight) // 1440))
        }
        for name in occurring:
            found[name].append(start + timedelta(minutes=number))
    return found


def arrivals(wanted: dict[str, list[datetime]], zone: str, start: datetime, minutes: int) -> dict[str, list[datetime]]:
    """Return for each list of naive local times the real minutes in which a clock reaches one or more of them."""
    names: dict[int, list[str]] = {}
    for name, locals_ in wanted.items():
        for local in locals_:
            names.setdefault((local - start.replace(tzinfo=None)) // timedelta(minutes=1), []).append(name)
    found: dict[str, list[datetime]] = {name: [] for name in wanted}
    for number, _, new in reached(zone, start, minutes):
        for name in {name for time in new if time in names for name in names[time]}:
            found[name].append(start + timedelta(minutes=number))
    return found
