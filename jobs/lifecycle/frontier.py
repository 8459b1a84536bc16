"""Where the jobs that can be claimed begin, for each queue and priority, as one worker process knows it.

Every claim leaves dead entries at the head of its index range, and while somebody holds an old snapshot they cannot be
cleaned away: a claim that starts at the head walks them all, each time. What a worker has claimed tells it where to
start instead. A job may still appear before that point: its transaction began earlier and committed late, or it was
handed back with the age it had. The notification of its commit says so and lowers the bound; a look at the database
at every poll finds what no notification told of.
"""

import time
import uuid
from collections.abc import Iterable, Sequence
from typing import Any, Final

from jobs.claims import Claim
from jobs.queries import Session

_SHARE: Final = 50  # a look at the database may cost one in so many seconds of a worker's time

Level = tuple[str, float]  # queue, priority


Place = tuple[float, uuid.UUID]  # run_at in seconds since 1970 on the database clock, and an id: the order of the index

_FIRST: Final = uuid.UUID(int=0)


class Frontier:
    """For each level the place from which on there may be jobs to claim. Used by a worker's loop only."""

    def __init__(self, queues: Sequence[str] | None) -> None:
        self._queues = None if queues is None else list(queues)
        self._places: dict[Level, Place] = {}
        self._is_wanted = True  # a look at the database
        self._not_before = 0.0  # on the monotonic clock
        self._moves = 0

    def __len__(self) -> int:
        return len(self._places)

    @property
    def is_stale(self) -> bool:
        """Whether the database should be asked: somebody wants it, and the last look was not too dear."""
        return self._is_wanted and time.monotonic() >= self._not_before

    @property
    def postponed_until(self) -> float | None:
        """When the look that is wanted may be taken, on the monotonic clock; None if none is wanted."""
        return self._not_before if self._is_wanted else None

    def doubt(self) -> None:
        """Have the database asked before the next claim: something may have been missed."""
        self._is_wanted = True

    def look(self, session: Session) -> None:
        """Ask the database where each level begins. O(levels) descents of the index, and the dead entries there."""
        started = time.monotonic()
        rows = session.fetch("frontier", queues=self._queues)
        self._places = {(queue, priority): (since, _FIRST) for queue, priority, since in rows}
        self._is_wanted = False
        self._moves += 1
        ended = time.monotonic()
        self._not_before = ended + _SHARE * (ended - started)

    def lower(self, level: Level, since: float) -> None:
        """Take in that a job of this level may run since then."""
        if self._queues is None or level[0] in self._queues:
            place = (since, _FIRST)
            if place <= self._places.get(level, place):
                self._places[level] = place
                self._moves += 1

    @property
    def moves(self) -> int:
        """How often it was moved by anything but a claim."""
        return self._moves

    def advance(self, claims: Iterable[Claim], moves: int) -> None:
        """Start behind what was claimed; only when nothing before it was left to others.

        Nor when it has moved since the claim was sent, which is what `moves` tells: the claim knew nothing of that.
        """
        if moves != self._moves:
            return
        latest: dict[Level, Place] = {}
        for claim in claims:
            level = (claim.queue, claim.priority)
            place = (claim.run_at, claim.id)
            if level not in latest or place > latest[level]:
                latest[level] = place
        for level, place in latest.items():
            self._places[level] = max(place, self._places[level])

    def queues(self) -> set[str]:
        """Return the queues in which there may be jobs."""
        return {queue for queue, _ in self._places}

    def as_arrays(self, queues: Sequence[str] | None = None) -> dict[str, Any]:
        """Return the parameters of the statements that start from here, for all queues or for these."""
        places = self._places
        if queues is not None:
            places = {level: place for level, place in places.items() if level[0] in queues}
        return {
            "queues": [queue for queue, _ in places],
            "priorities": [priority for _, priority in places],
            "sinces": [since for since, _ in places.values()],
            "firsts": [first for _, first in places.values()],
        }
