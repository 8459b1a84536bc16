"""How one run can end: values, made by whoever ran the job and written by `jobs.lifecycle`.

Running and recording are two steps joined by one of these. Nothing here touches a row.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Succeeded:
    """The handler returned. `result` is JSON text, storable as it stands, or None for no result."""

    result: str | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """The attempt counts as failed: retried with backoff while attempts are left, then a dead letter.

    `error` is one readable line; `traceback` the long form; `lost` says that nobody saw the end (worker gone). With
    `final` no attempt follows; `delay` is in how many seconds the next one does, where the handler said so.
    """

    error: str
    traceback: str = ""
    lost: bool = False
    final: bool = False
    delay: float | None = None


@dataclass(frozen=True, slots=True)
class Snoozed:
    """The handler wants to be called again in `delay` seconds. No attempt is spent."""

    delay: float
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The handler saw that it was asked to stop, and did; or it was never started."""

    reason: str = ""
    expired: bool = False  # because it was not started in time


@dataclass(frozen=True, slots=True)
class Released:
    """A planned hand-back: shutdown, a type unknown here, claimed and never started. No attempt is spent.

    `delay` in seconds keeps the job from coming straight back to the worker that could not run it.
    """

    reason: str
    delay: float = 0.0


Outcome = Succeeded | Failed | Snoozed | Cancelled | Released
