"""How far ahead a worker claims: nothing when its handlers are slow, hundreds of jobs when they take microseconds.

What is claimed ahead is out of every other worker's reach, so it is kept to a few hundredths of a second of work:
order stays global, and round trips vanish where they would dominate.
"""

import statistics
from collections.abc import Sequence

from jobs.claims import Ended

_WORK_AHEAD = 0.05  # seconds of work to hold in reserve for each slot
_WEIGHT = 0.3  # of the latest batch in the running mean


class ClaimAhead:
    """A running mean of how long handlers take, and the reserve that follows from it."""

    def __init__(self, concurrency: int, most: int) -> None:
        self._concurrency = concurrency
        self._most = most
        self._mean: float | None = None  # seconds; None until something has been measured
        self.typical: float | None = None  # the median: a run that waited for the interpreter does not move it

    def observe(self, ended: Sequence[Ended]) -> None:
        """Take in how long the handlers of one batch ran."""
        durations = [end.duration for end in ended if end.duration is not None]
        if durations:
            self.typical = statistics.median(durations)
            latest = sum(durations) / len(durations)
            self._mean = latest if self._mean is None else self._mean + _WEIGHT * (latest - self._mean)

    def forget(self) -> None:
        """Start again with no reserve: what was claimed ahead did not get its turn."""
        self._mean = self.typical = None

    @property
    def size(self) -> int:
        """How many jobs to hold beyond the free slots."""
        if self._mean is None:
            return 0
        return min(self._most, int(self._concurrency * _WORK_AHEAD / max(self._mean, 1e-6)))
