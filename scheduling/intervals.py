"""Owns intervals such as `5m` or `1mo`, and the grid of the moments that lie whole intervals after an anchor.

It never reads a clock, and never computes an occurrence from the one before: each is one step from the anchor, so
nothing drifts, and what a short month cuts off is back in the next one. Seconds, minutes and hours are elapsed time;
days, weeks, months and years are steps of the zone's calendar that keep the time of day. Every call is O(1).
"""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from dateutil.relativedelta import relativedelta

from scheduling.zones import LAST_YEAR, InvalidRule, first_instant, instant, local_time, zone_named

_ELAPSED: Final = {"s": timedelta(seconds=1), "m": timedelta(minutes=1), "h": timedelta(hours=1)}
_DAYS: Final = {"d": timedelta(days=1), "w": timedelta(weeks=1)}
_MONTHS: Final = {"mo": 1, "y": 12}

_CENTURY: Final = timedelta(days=36_525)
_MOST: Final = {
    **{unit: _CENTURY // length for unit, length in (_ELAPSED | _DAYS).items()},
    **{unit: 1200 // months for unit, months in _MONTHS.items()},
}


@dataclass(frozen=True, slots=True)
class Interval:
    """A whole number of one unit: `s`, `m`, `h`, `d`, `w`, `mo` or `y`; from 1 s to 100 years.

    Raises InvalidRule for any other number or unit.
    """

    count: int
    unit: str

    def __post_init__(self) -> None:
        """Refuse what is no interval."""
        if not 1 <= self.count <= _MOST.get(self.unit, 0):
            raise _invalid(str(self))

    @classmethod
    def parse(cls, text: str) -> "Interval":
        """Return the interval that a text such as `30s` or `1mo` stands for."""
        parts = re.fullmatch(r"([0-9]{1,10})([a-z]{1,2})", text)
        if parts is None:
            raise _invalid(text)
        return cls(int(parts[1]), parts[2])

    def __str__(self) -> str:
        return f"{self.count}{self.unit}"

    def after(self, moment: datetime, zone: str = "UTC", times: int = 1) -> datetime:
        """Return the instant that is `times` intervals after a moment, computed in one step.

        A day that a month does not have becomes its last one, a time of day in a gap the end of the gap, and one in
        a repeated hour its first pass.

        Raises ValueError for a naive moment, InvalidRule for an unknown zone.
        """
        moment, where = instant(moment), zone_named(zone)
        count = times * self.count
        if self.unit in _ELAPSED:
            return moment + count * _ELAPSED[self.unit]
        local = local_time(moment, where)
        if self.unit in _DAYS:
            return first_instant(local + count * _DAYS[self.unit], where)
        return first_instant(local + relativedelta(months=count * _MONTHS[self.unit]), where)


@dataclass(frozen=True, slots=True)
class Grid:
    """The moments that lie 0, 1, 2, ... intervals after an anchor.

    anchor: the first occurrence, aware.
    zone: the IANA name of the zone in whose calendar days, weeks, months and years are counted.

    Raises InvalidRule for an anchor that is naive or too far away, and for an unknown zone.
    """

    interval: Interval
    anchor: datetime
    zone: str = "UTC"

    def __post_init__(self) -> None:
        """Refuse what makes no grid."""
        zone_named(self.zone)
        try:
            # In UTC, so that equal grids are equal.
            object.__setattr__(self, "anchor", instant(self.anchor))
        except ValueError as error:
            raise InvalidRule(f"Anchor {error}") from None

    def after(self, moment: datetime) -> datetime | None:
        """Return the first occurrence later than a moment; None beyond the year 2999.

        Raises ValueError for a naive moment.
        """
        moment = instant(moment)
        found = self._occurrence(self._passed(moment) if moment >= self.anchor else 0)
        return found if found.year <= LAST_YEAR else None

    def before(self, moment: datetime) -> datetime | None:
        """Return the last occurrence at or before a moment; None before the anchor.

        Raises ValueError for a naive moment.
        """
        moment = instant(moment)
        return self._occurrence(self._passed(moment) - 1) if moment >= self.anchor else None

    def _passed(self, moment: datetime) -> int:
        """Return how many occurrences lie at or before a moment that is not before the anchor."""
        number = max(1, self._estimate(moment))
        while self._occurrence(number) <= moment:
            number += 1
        return number

    def _estimate(self, moment: datetime) -> int:
        """Return the number of the last occurrence up to a moment: that, the one after it, or the one before it."""
        count, unit = self.interval.count, self.interval.unit
        if unit in _ELAPSED:
            return (moment - self.anchor) // (count * _ELAPSED[unit])
        zone = zone_named(self.zone)
        start, end = local_time(self.anchor, zone), local_time(moment, zone)
        if unit in _DAYS:
            return (end - start) // (count * _DAYS[unit])
        return (12 * (end.year - start.year) + end.month - start.month) // (count * _MONTHS[unit])

    def _occurrence(self, number: int) -> datetime:
        # The anchor itself may be in the second pass of a repeated hour.
        return self.interval.after(self.anchor, self.zone, number) if number else self.anchor


def _invalid(text: str) -> InvalidRule:
    return InvalidRule(
        f"Interval {text[:40]!r} is not one: give a whole number and one unit of s, m, h, d, w, mo or y,"
        " from 1s to 100y, such as 90m."
    )
