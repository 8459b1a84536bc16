"""A job as its worker holds it, and a run that has ended: the values that travel between claiming, running, recording.

They are tuples, because one of each is made for every job, and copies: what the database says decides, and every write
about a claim proves itself by id, attempt and worker.
"""

import uuid
from typing import NamedTuple

from jobs.outcomes import Outcome


class Claim(NamedTuple):
    """One job, claimed by one worker for one attempt. Times are seconds since 1970 on the database clock."""

    id: uuid.UUID
    type: str
    queue: str
    priority: float
    payload: str  # JSON text, decoded only when the job runs
    attempt: int  # the fencing token
    attempts_refunded: int
    max_attempts: int
    run_at: float
    created_at: float
    claimed_at: float
    cancel_requested: bool = False
    timeout: float | None = None  # seconds; None for what the type says
    expires_at: float | None = None
    scheduled_at: float | None = None
    workflow_id: uuid.UUID | None = None

    @property
    def is_last_attempt(self) -> bool:
        """Whether no attempt is left should this one fail."""
        return self.attempt - self.attempts_refunded >= self.max_attempts


class Ended(NamedTuple):
    """A claim whose run has ended, with how, and how long the handler ran in seconds (None: it never started)."""

    claim: Claim
    outcome: Outcome
    duration: float | None = None
