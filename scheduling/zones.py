"""Owns the step between the clocks of a time zone and instants: hours that are skipped, and hours that come twice.

It knows no rules, repeats nothing and never reads a clock. An instant is an aware datetime in UTC; a local time is a
naive one, what a clock in the zone shows. Source: PEP 495 for `fold`, which tells the two passes of a repeated hour
apart; `zoneinfo` lists no transitions, so the moment of one is found by bisection, in steps of a second.
"""

from bisect import bisect_left
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

FIRST_YEAR: Final = 1900
LAST_YEAR: Final = 2999
"""Between them no rule and no zone comes near the ends of Python's calendar."""


class InvalidRule(ValueError):
    """A rule that cannot be followed: what is wrong, with which value, and what would do."""


@cache
def zone_named(name: str) -> ZoneInfo:
    """Return the zone with this IANA name.

    Raises InvalidRule for a name that is unknown, or that is another zone on the next machine.
    """
    if name not in _names():
        raise InvalidRule(f"Time zone {name!r} is unknown: give an IANA name such as 'Europe/Paris', or 'UTC'.")
    return ZoneInfo(name)


@cache
def _names() -> set[str]:
    # Machines differ in what they call local.
    return available_timezones() - {"localtime"}


def instant(moment: datetime) -> datetime:
    """Return a moment in UTC.

    Raises ValueError for a naive datetime and for a year outside 1900 to 2999.
    """
    if moment.utcoffset() is None:
        raise ValueError(f"{moment.isoformat()} has no time zone: give an aware datetime, such as one in UTC.")
    if not FIRST_YEAR <= moment.year <= LAST_YEAR:
        raise ValueError(f"{moment.isoformat()} is too far away: give a year from {FIRST_YEAR} to {LAST_YEAR}.")
    return moment.astimezone(UTC)


def local_time(moment: datetime, zone: ZoneInfo) -> datetime:
    """Return what the clocks of a zone show at an instant."""
    return moment.astimezone(zone).replace(tzinfo=None)


def instants(local: datetime, zone: ZoneInfo) -> list[datetime]:
    """Return when the clocks of a zone show a local time: once, twice in a repeated hour, never in a gap."""
    first, second = _passes(local, zone)
    if first == second:
        return [first]
    return [first, second] if first < second else []


def first_instant(local: datetime, zone: ZoneInfo) -> datetime:
    """Return when the clocks of a zone first show a local time; for one in a gap, the end of the gap."""
    first, second = _passes(local, zone)
    return first if first <= second else _transition(second, first, zone)


def turning_back(moment: datetime, zone: ZoneInfo) -> datetime | None:
    """Return when clocks are set back, if what they show at an instant is shown twice; else None."""
    first, second = _passes(local_time(moment, zone), zone)
    return _transition(first, second, zone) if first < second else None


def _passes(local: datetime, zone: ZoneInfo) -> tuple[datetime, datetime]:
    """Return the instants by the offset before and after a change; in a gap the second is the earlier one."""
    first, second = (local.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    return first, second


def _transition(low: datetime, high: datetime, zone: ZoneInfo) -> datetime:
    """Return the first instant after `low` and up to `high` at which the zone has the offset that `high` has."""
    # Offsets change at whole seconds.
    low = low.replace(microsecond=0)
    before = low.astimezone(zone).utcoffset()

    def changed(seconds: int) -> bool:
        return (low + timedelta(seconds=seconds)).astimezone(zone).utcoffset() != before

    return low + timedelta(seconds=bisect_left(range(int((high - low).total_seconds()) + 1), True, key=changed))
