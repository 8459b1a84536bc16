"""How jobs and outcomes are written down in the spool: JSON, with the version of the format.

A record is read by whichever release adopts it. What it does not understand it refuses by `Unreadable`, and loses
nothing: the caller sets the record aside.
"""

import dataclasses
import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Self

from jobs.claims import Claim, Ended
from jobs.outcomes import Cancelled, Failed, Outcome, Released, Snoozed, Succeeded

_VERSION: Final = 1
_OUTCOMES: Final[Mapping[str, type[Outcome]]] = {
    kind.__name__.lower(): kind for kind in (Succeeded, Failed, Snoozed, Cancelled, Released)
}


class Unreadable(ValueError):
    """A record was written by another release, in a form that this one does not know."""


@dataclass(frozen=True, slots=True)
class SpooledJob:
    """A job that was accepted, checked whole, while the database was away."""

    id: uuid.UUID
    type: str
    queue: str
    priority: float
    payload: str  # JSON text, storable
    max_attempts: int
    accepted_at: datetime  # on the clock of the host that accepted it
    run_at: datetime | None  # None: as soon as it can

    def pack(self) -> bytes:
        """Return the record."""
        return _pack(dataclasses.asdict(self))

    @classmethod
    def unpack(cls, record: bytes) -> Self:
        """Return the job of a record; raises Unreadable."""
        try:
            fields = _unpack(record)
            return cls(**fields | {
                "id": uuid.UUID(fields["id"]),
                "accepted_at": datetime.fromisoformat(fields["accepted_at"]),
                "run_at": fields["run_at"] and datetime.fromisoformat(fields["run_at"]),
            })  # fmt: skip
        except (KeyError, TypeError, ValueError) as error:
            raise Unreadable(f"This is no job that this release can read: {error!r}") from error


@dataclass(frozen=True, slots=True)
class SpooledOutcome:
    """How a run ended that its worker could not report."""

    worker_id: uuid.UUID
    ended: Ended

    def pack(self) -> bytes:
        """Return the record, without the job's payload: recording the end of a run does not need it."""
        claim = self.ended.claim._replace(payload="")
        return _pack({
            "worker_id": self.worker_id,
            "claim": claim._asdict(),
            "kind": type(self.ended.outcome).__name__.lower(),
            "outcome": dataclasses.asdict(self.ended.outcome),
            "duration": self.ended.duration,
        })  # fmt: skip

    @classmethod
    def unpack(cls, record: bytes) -> Self:
        """Return the outcome of a record; raises Unreadable."""
        try:
            fields = _unpack(record)
            claim = Claim(**fields["claim"] | {"id": uuid.UUID(fields["claim"]["id"])})
            outcome = _OUTCOMES[fields["kind"]](**fields["outcome"])
            return cls(uuid.UUID(fields["worker_id"]), Ended(claim, outcome, fields["duration"]))
        except (KeyError, TypeError, ValueError) as error:
            raise Unreadable(f"This is no outcome that this release can read: {error!r}") from error


def _pack(fields: Mapping[str, Any]) -> bytes:
    return json.dumps({"version": _VERSION, **fields}, default=str, ensure_ascii=True, separators=(",", ":")).encode()


def _unpack(record: bytes) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads(record)
    if (version := fields.pop("version")) != _VERSION:
        raise Unreadable(f"Its format has the version {version}, and this release reads {_VERSION}.")
    return fields
