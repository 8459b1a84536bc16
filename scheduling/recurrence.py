"""Owns what is common to all rules of recurrence: the next moments, and which missed ones still become runs.

It never reads a clock, stores a marker or makes a job: it is told the time and the marker, and answers with values.
The work of one call is bounded by the number of moments that it may return, whatever the time that has passed.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import chain, islice, takewhile
from typing import Final, Protocol

from scheduling.zones import instant

_MICROSECOND: Final = timedelta(microseconds=1)


class Rule(Protocol):
    """Anything that occurs at moments fixed for good: `Grid` and `Cron`."""

    def after(self, moment: datetime) -> datetime | None:
        """Return the first occurrence later than a moment, in UTC; None if there is none."""

    def before(self, moment: datetime) -> datetime | None:
        """Return the last occurrence at or before a moment, in UTC; None if there is none."""


class CatchUp(StrEnum):
    """What becomes of occurrences that were missed."""

    SKIP = "skip"
    """Nothing."""
    ONE = "one"
    """The latest of them runs, unless one that is on time runs anyway."""
    ALL = "all"
    """Each of them runs."""


@dataclass(frozen=True, slots=True)
class Due:
    """What is to run, and how far the rule has been followed.

    slots: the occurrences to run, in their order.
    last: the latest occurrence, run or not; the `last` of the next call.
    """

    slots: list[datetime]
    last: datetime


def upcoming(rule: Rule, moment: datetime, count: int) -> list[datetime]:
    """Return the next occurrences after a moment, `count` of them or as many as there are."""
    return list(islice(_forwards(rule, moment), count))


def due(rule: Rule, last: datetime, now: datetime, *, catch_up: CatchUp, limit: int, grace: float) -> Due:
    """Return which occurrences later than `last` and up to `now` are to run.

    limit: the newest so many at most, at least 1.
    grace: seconds, at least 0; an occurrence that is no later than that is on time, and runs by any policy.

    Raises ValueError for a naive time, and for a limit or a grace outside its range.
    """
    last, now = instant(last), instant(now)
    if limit < 1:
        raise ValueError(f"Catch-up limit is {limit!r}: give a whole number from 1 up.")
    if not 0 <= grace < math.inf:
        raise ValueError(f"Catch-up grace is {grace!r}: give finite seconds from 0 up.")
    passed = _backwards(rule, last, now)
    latest = next(passed, None)
    if latest is None:
        return Due([], last)
    slots: Iterator[datetime] = chain([latest], passed)
    if catch_up != CatchUp.ALL:
        slots = takewhile(lambda slot: (now - slot).total_seconds() <= grace, slots)
    newest = list(islice(slots, limit))
    if catch_up == CatchUp.ONE:
        newest = newest or [latest]
    return Due(newest[::-1], latest)


def _forwards(rule: Rule, moment: datetime) -> Iterator[datetime]:
    """Yield the occurrences later than a moment."""
    found = rule.after(moment)
    while found is not None:
        yield found
        found = rule.after(found)


def _backwards(rule: Rule, last: datetime, now: datetime) -> Iterator[datetime]:
    """Yield the occurrences up to `now` and later than `last`, the latest first."""
    found = rule.before(now)
    while found is not None and found > last:
        yield found
        found = rule.before(found - _MICROSECOND)
