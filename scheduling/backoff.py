"""Owns the delay before the next attempt: exponential growth, a cap and jitter.

It never decides whether there is a next attempt, and never raises for an attempt number: it is called while a
failure is being recorded, where one more error would lose the job. Every call is O(1), whatever the attempt.
Jitter keeps jobs that failed together from coming back together; source: Brooker, "Exponential Backoff And
Jitter", AWS Architecture Blog, 2015.
"""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

_WIDEST: Final = 1e300
"""Largest cap / base: below the largest float by a margin that no rounding can use up."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delays of `base`, `base * factor`, `base * factor**2`, ... seconds, up to `cap`, each of them jittered.

    base: seconds, more than 0.
    factor: growth per attempt, at least 1.
    cap: seconds, at least 0; no delay is longer.

    Raises ValueError when a value is outside its range or not finite.
    """

    base: float = 1.0
    factor: float = 5.0
    cap: float = 3600.0

    def __post_init__(self) -> None:
        """Refuse numbers that make no delay."""
        if not 0 < self.base < math.inf:
            raise ValueError(f"Backoff base is {self.base!r}: give finite seconds above 0.")
        if not 1 <= self.factor < math.inf:
            raise ValueError(f"Backoff factor is {self.factor!r}: give a finite number from 1 up.")
        if not 0 <= self.cap < math.inf:
            raise ValueError(f"Backoff cap is {self.cap!r}: give finite seconds, 0 for no delay.")
        if self.cap > self.base * _WIDEST:
            raise ValueError(f"Backoff cap {self.cap!r} is over 1e300 times base {self.base!r}: lower it.")

    def ceiling(self, attempt: int) -> float:
        """Return the delay in seconds after an attempt, without jitter; 1 or less is the first attempt."""
        if attempt <= 1 or self.factor == 1:
            return min(self.base, self.cap)
        # Asked before multiplying, for the power itself overflows long before the attempts run out.
        if attempt - 1 >= self._growths_to_cap():
            return self.cap
        return min(self.base * self.factor ** (attempt - 1), self.cap)

    def delay(self, attempt: int, random: Callable[[], float] = random.random) -> float:
        """Return a delay in seconds, uniform between 0.5 and 1.5 times the ceiling but never above the cap.

        The range is cut at the cap before drawing, so that long delays keep their spread instead of gathering
        at the cap. `random` returns a number between 0 and 1.
        """
        ceiling = self.ceiling(attempt)
        low, high = ceiling / 2, min(ceiling * 1.5, self.cap)
        return min(high, max(low, low + (high - low) * random()))

    def _growths_to_cap(self) -> float:
        if self.cap <= self.base:
            return 0.0
        return (math.log(self.cap) - math.log(self.base)) / math.log(self.factor)
