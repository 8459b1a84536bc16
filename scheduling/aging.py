"""Owns the effective priority: how waiting makes a job more urgent, and when that changes next.

It never orders jobs, reads a clock or rewrites a row: it is a pure function of a priority and a wait. Every
call is O(1). For a given priority the result never rises with the wait, so aging cannot reorder jobs of equal
priority; the heap rests on that. Source: aging against starvation, Silberschatz, Galvin and Gagne, "Operating
System Concepts", priority scheduling.
"""

import math
from dataclasses import dataclass
from typing import Final

DIGITS: Final = 9
"""Decimals of an effective priority: coarse enough to hide float noise, so that SQL and Python agree."""

_UNIT: Final = 1e-9
_MICROSECOND: Final = 1e-6


@dataclass(frozen=True, slots=True)
class Aging:
    """Every `step` seconds beyond a threshold make a job more urgent by `decrement`, until it is at 1.

    step: seconds, at least a microsecond.
    decrement: priority levels per step; 0 turns aging off, else at least 1e-9.
    thresholds: seconds that High, Medium and Low jobs wait before the first step begins, each at least 0; a
        fractional priority has the threshold of its nearest level, halves going to the less urgent one.

    Raises ValueError when a value is outside its range.
    """

    step: float = 30.0
    decrement: float = 1.0
    thresholds: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        """Refuse numbers that make no schedule."""
        if not _MICROSECOND <= self.step < math.inf:
            raise ValueError(f"Aging step is {self.step!r}: give finite seconds, at least 0.000001.")
        if not (self.decrement == 0 or _UNIT <= self.decrement < math.inf):
            raise ValueError(f"Aging decrement is {self.decrement!r}: give 0 for none, or a finite 1e-9 up.")
        if len(self.thresholds) != 3 or not all(0 <= wait < math.inf for wait in self.thresholds):
            raise ValueError(f"Aging thresholds are {self.thresholds!r}: give three finite waits from 0 up.")

    def effective(self, priority: float, waited: float) -> float:
        """Return the priority that counts after `waited` seconds (finite; negative for a job not yet due).

        Never below 1, and never above a `priority` of at least 1. Rounded to nine decimals once it differs
        from `priority`.
        """
        return self.outlook(priority, waited)[0]

    def next_change(self, priority: float, waited: float) -> float:
        """Return in how many seconds, more than 0, `effective` changes next; infinite when it never will."""
        return self.outlook(priority, waited)[1]

    def outlook(self, priority: float, waited: float) -> tuple[float, float]:
        """Return `effective` and `next_change` for the price of one."""
        if self.decrement == 0:
            return max(1.0, priority), math.inf
        overdue = waited - self._threshold(priority)
        if overdue < self.step:
            steps, effective = 0, priority
        else:
            steps = math.floor(overdue / self.step)
            # One multiplication per call: adding up decrements would pile up their rounding errors.
            effective = round(priority - self.decrement * steps, DIGITS)
        if effective <= 1.0:
            return 1.0, math.inf
        # The difference can round to nothing, just before a step.
        return effective, self.step * (steps + 1) - overdue or _MICROSECOND

    def bound(self, priority: float) -> float:
        """Return the wait in seconds from which on the effective priority is 1; infinite when aging is off.

        The bound on starvation: from then on no job that is due later comes first, whatever its priority.
        """
        if priority <= 1.0:
            return 0.0
        if self.decrement == 0:
            return math.inf
        # What is within half a unit of 1 rounds to 1, see `effective`.
        steps = math.ceil((priority - 1.0 - _UNIT / 2) / self.decrement)
        return self._wait_for(max(1, steps), self._threshold(priority))

    def _wait_for(self, steps: int, threshold: float) -> float:
        wait = threshold + steps * self.step
        # The sum can round to just below the moment at which the last of the steps counts.
        while (wait - threshold) / self.step < steps:
            wait = math.nextafter(wait, math.inf)
        return wait

    def _threshold(self, priority: float) -> float:
        high, medium, low = self.thresholds
        if priority < 1.5:
            return high
        return medium if priority < 2.5 else low


FAST: Final = Aging()
"""Low becomes Medium after 30 s and High after 60 s."""

SLOW: Final = Aging(step=30.0, decrement=0.1, thresholds=(0.0, 120.0, 300.0))
"""A tenth of a level every 30 s, after 2 min for Medium and 5 min for Low."""
