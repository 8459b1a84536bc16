"""What a type says in code of its own recurrence: `@job(every="5m")`, `@job(cron="0 9 * * 1-5", tz="Europe/Paris")`."""

import functools
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from scheduling import CatchUp, Cron, Grid, Interval, Rule

# Grids of the code are counted from here, so that every process and every deploy agrees on them.
_ANCHOR: Final = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Schedule:
    """A rule that is declared beside its handler. Raises `scheduling.InvalidRule` for what could never fire."""

    every: str = ""  # an interval
    cron: str = ""
    zone: str = "UTC"
    catch_up: str = "one"  # skip, one or all
    overlap: str = "skip"  # or allow

    def __post_init__(self) -> None:
        """Refuse what makes no rule."""
        CatchUp(self.catch_up)
        if self.overlap not in ("skip", "allow"):
            raise ValueError(f"overlap is {self.overlap!r}; use skip or allow.")
        if bool(self.every) == bool(self.cron):
            raise ValueError("Give either every= or cron=.")
        _ = self.rule

    @functools.cached_property
    def rule(self) -> Rule:
        """The moments at which it fires."""
        return Cron(self.cron, self.zone) if self.cron else Grid(Interval.parse(self.every), self.anchor, self.zone)

    @property
    def anchor(self) -> datetime:
        """From where an interval is counted: midnight of 1 January 2000 in the zone."""
        return Cron("0 0 1 1 *", self.zone).before(_ANCHOR.replace(day=2)) or _ANCHOR
