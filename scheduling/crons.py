"""Owns cron rules: what is one, and when it fires in a time zone, also while the clocks there change.

It never reads a clock. The `cronsim` package parses an expression and finds the local times that match it; which
instants those are is decided here. Every search ends after 50 years: on the 29th of February alone can a valid rule
wait for long, at most 40 years for one of a given weekday. Source for fixed times and wildcards: cron(8) of Debian.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from cronsim import CronSim, CronSimError

from scheduling.zones import (
    LAST_YEAR,
    InvalidRule,
    first_instant,
    instant,
    instants,
    local_time,
    turning_back,
    zone_named,
)

SEARCH_YEARS: Final = 50
LONGEST: Final = 500
"""Characters in an expression; all minutes and hours one by one are 232."""

ALIASES: Final = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}

_ALLOWED: Final = {
    "minute": "0-59",
    "hour": "0-23",
    "day-of-month": "1-31, L or LW",
    "month": "1-12 or JAN-DEC",
    "day-of-week": "0-7 or SUN-SAT, 5L or MON#1",
}

_JUDGED_FROM: Final = datetime(2100, 1, 1, tzinfo=UTC)
"""The dates of a rule repeat in every century, and by then each zone follows rules that do not end."""

_SECOND: Final = timedelta(seconds=1)
_MICROSECOND: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Cron:
    """The moments at which the local time of a zone matches a cron expression.

    expression: minute, hour, day of month, month and day of week, or an alias such as `@daily`.
    zone: an IANA name.

    A rule is a wildcard if its minute or hour begins with `*`: it fires whenever clocks show a time that matches,
    so never in a gap, and in both passes of a repeated hour. Any other has fixed times: those in a gap are one
    occurrence at its end, and those in a repeated hour occur in its first pass.

    Raises InvalidRule for an expression that cannot be read or never fires, and for an unknown zone.
    """

    expression: str
    zone: str = "UTC"

    def __post_init__(self) -> None:
        """Refuse what is no rule, and what never fires."""
        zone_named(self.zone)
        _check(self.expression)
        if self.after(_JUDGED_FROM) is None:
            raise _never(self.expression, f" in {self.zone}")

    @property
    def is_wildcard(self) -> bool:
        """Whether the rule follows the local clock through the nights on which it changes."""
        minute, hour, *_ = _fields(self.expression)
        return minute.startswith("*") or hour.startswith("*")

    def after(self, moment: datetime) -> datetime | None:
        """Return the first occurrence later than a moment; None if there is none within 50 years.

        Raises ValueError for a naive moment.
        """
        moment, zone = instant(moment), zone_named(self.zone)
        found = self._first(moment, local_time(moment, zone))
        turn = turning_back(moment, zone)
        if turn and moment < turn and not (found and found < turn):
            # What clocks have shown already, they will show once more.
            found = self._first(turn - _MICROSECOND, local_time(turn, zone) - _SECOND)
        return found if found and found.year <= LAST_YEAR else None

    def before(self, moment: datetime) -> datetime | None:
        """Return the last occurrence at or before a moment; None if there is none within 50 years.

        Raises ValueError for a naive moment.
        """
        moment, zone = instant(moment), zone_named(self.zone)
        found = self._last(moment, local_time(moment, zone))
        turn = turning_back(moment, zone)
        if turn and turn <= moment and not (found and found >= turn):
            # Before they were set back, clocks have shown later times than now.
            end = turn - _MICROSECOND
            found = self._last(end, local_time(end, zone))
        return found

    def _first(self, moment: datetime, local: datetime) -> datetime | None:
        """Return the first occurrence later than a moment, whose local time is later than `local`."""
        found = self._occurrences(local, CronSim(" ".join(_fields(self.expression)), local))
        return next((occurrence for occurrence in found if occurrence > moment), None)

    def _last(self, moment: datetime, local: datetime) -> datetime | None:
        """Return the last occurrence at or before a moment, whose local time is at or before `local`."""
        # The search begins below the second that it is given.
        above = local.replace(microsecond=0) + _SECOND
        found = self._occurrences(local, CronSim(" ".join(_fields(self.expression)), above, reverse=True))
        return next((occurrence for occurrence in found if occurrence <= moment), None)

    def _occurrences(self, local: datetime, matches: CronSim) -> Iterator[datetime]:
        """Yield the instants of local times, in their order or against it, up to 50 years from `local`."""
        zone, wildcard = zone_named(self.zone), self.is_wildcard
        for match in matches:
            if abs(match.year - local.year) > SEARCH_YEARS:
                return
            found = instants(match, zone) if wildcard else [first_instant(match, zone)]
            yield from reversed(found) if match <= local else found


def _fields(expression: str) -> list[str]:
    return ALIASES.get(expression.strip().lower(), expression).split()


def _check(expression: str) -> None:
    """Refuse what is no cron rule of five fields, or has a date that is in no calendar."""
    fields = _fields(expression)
    if len(expression) > LONGEST:
        raise InvalidRule(
            f"Cron rule {expression[:40]!r}... is longer than {LONGEST} characters: use ranges and steps."
        )
    if fields and fields[0].startswith("@"):
        raise InvalidRule(f"Cron rule {expression!r} is unknown: give five fields or one of {', '.join(ALIASES)}.")
    if len(fields) != 5:
        raise InvalidRule(
            f"Cron rule {expression!r} has {len(fields)} fields: give five, for minute, hour, day of month, month and"
            " day of week; for seconds use an interval such as 30s."
        )
    for place, (name, allowed) in enumerate(_ALLOWED.items()):
        alone = ["*"] * 5
        alone[place] = fields[place]
        if not _is_read(alone):
            raise InvalidRule(
                f"Cron rule {expression!r} has a bad {name}, {fields[place]!r}: give * or {allowed}, alone, in a list"
                " such as 1,2, in a range such as 1-5, or with a step such as */5."
            )
    if not _is_read(fields):
        raise _never(expression)


def _is_read(fields: list[str]) -> bool:
    try:
        CronSim(" ".join(fields), _JUDGED_FROM)
    except CronSimError:
        return False
    return True


def _never(expression: str, where: str = "") -> InvalidRule:
    return InvalidRule(f"Cron rule {expression!r} never fires{where}: give a date and a time that exist.")
