"""What operators hold back, as one worker process knows it: paused queues and types, limited queues.

Asked of the database when somebody says that it has changed, and at every poll. Queues that are neither paused nor
limited are claimed from as if this did not exist.
"""

import time

from jobs.queries import Session


class Controls:
    """Used by a worker's loop only."""

    def __init__(self) -> None:
        self.paused: frozenset[str] = frozenset()  # queues
        self.limited: frozenset[str] = frozenset()  # queues
        self.paused_types: list[str] = []
        self.reopens_at: float | None = None  # on the monotonic clock: when the first pause is over by itself
        self._is_wanted = True

    @property
    def is_stale(self) -> bool:
        """Whether the database should be asked."""
        return self._is_wanted or (self.reopens_at is not None and time.monotonic() >= self.reopens_at)

    @property
    def hold_back_nothing(self) -> bool:
        """Whether jobs are claimed as if there were no controls."""
        return not (self.paused or self.limited or self.paused_types)

    def doubt(self) -> None:
        """Have the database asked before the next claim: something may have changed."""
        self._is_wanted = True

    def look(self, session: Session) -> None:
        """Ask the database."""
        rows = session.fetch("controls")
        self.paused = frozenset(name for kind, name, paused, _, _ in rows if kind == "queue" and paused)
        self.limited = frozenset(name for kind, name, paused, limited, _ in rows if limited and not paused)
        self.paused_types = [name for kind, name, *_ in rows if kind == "type"]
        ends = [seconds for *_, seconds in rows if seconds is not None and seconds > 0]
        self.reopens_at = time.monotonic() + min(ends) if ends else None
        self._is_wanted = False
