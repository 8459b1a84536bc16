"""What docs/states.md says of jobs, edges and keys, as a model in memory: written from that text, not from the code."""

import uuid
from collections import deque
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from jobs.outcomes import Cancelled, Failed, Outcome, Released, Snoozed, Succeeded

DEAD, LIVE = ("failed", "cancelled"), ("pending", "processing")


@dataclass(slots=True)
class Known:
    """What the model knows of a job."""

    id: uuid.UUID
    mark: int  # its payload
    max_attempts: int = 1
    parents: dict[uuid.UUID, str] = field(default_factory=dict)  # and what the failure of each does
    settled: set[uuid.UUID] = field(default_factory=set)
    status: str = "pending"
    attempt: int = 0
    refunded: int = 0
    is_due: bool = True
    is_asked_to_stop: bool = False
    because: uuid.UUID | None = None
    key: str | None = None
    lasts: bool = True  # whether it holds its key while it runs
    workflow: uuid.UUID | None = None

    @property
    def unmet(self) -> int:
        """How many parents are not settled."""
        return len(self.parents) - len(self.settled)

    @property
    def is_ready(self) -> bool:
        """Whether a worker that comes now takes it."""
        return self.status == "pending" and self.is_due and not self.unmet

    @property
    def holds_its_key(self) -> bool:
        """The table of unique keys."""
        if self.status == "pending":
            return self.attempt == 0 or self.lasts
        return self.status == "processing" and self.lasts


class Model:
    """All jobs that were made, and the rules."""

    def __init__(self) -> None:
        self.jobs: dict[uuid.UUID, Known] = {}

    # What is asked

    def with_status(self, *statuses: str) -> list[Known]:
        """Return the jobs that stand so."""
        return [job for job in self.jobs.values() if job.status in statuses]

    def holder_of(self, key: str) -> Known | None:
        """Return who has a key; never two."""
        holders = [job for job in self.jobs.values() if job.key == key and job.holds_its_key]
        assert len(holders) < 2
        return holders[0] if holders else None

    def dead_parents(self, job: Known) -> list[Known]:
        """Return those with which it never runs."""
        return [self.jobs[id_] for id_, rule in job.parents.items()
                if rule == "cancel" and self.jobs[id_].status in DEAD]  # fmt: skip

    def roots_of(self, job: Known) -> set[uuid.UUID]:
        """Return whom it may name as the one because of whom it is cancelled: with two dead roots, either."""
        roots: set[uuid.UUID] = set()
        for parent in self.dead_parents(job):
            if parent.because is None or self.jobs[parent.because].status not in DEAD:  # that one was retried alone
                roots.add(parent.id)
            if parent.because is not None:
                roots |= {parent.because} | self.roots_of(parent)
        return roots

    # What is done

    def add(self, job: Known) -> None:
        """Take in a job that was made: of its parents those that have ended are settled."""
        job.settled = {id_ for id_ in job.parents if self.jobs[id_].status not in LIVE}
        self.jobs[job.id] = job

    def claim(self, ids: Iterable[uuid.UUID]) -> None:
        """Let a worker take them."""
        for id_ in ids:
            self.jobs[id_].status = "processing"
            self.jobs[id_].attempt += 1

    def end(self, id_: uuid.UUID, outcome: Outcome) -> set[uuid.UUID]:
        """End a run; returns whom that cancelled besides."""
        job = self.jobs[id_]
        job.status = self._fate(job, outcome)
        job.refunded += isinstance(outcome, Snoozed | Released)
        if job.status == "pending":
            job.is_due &= isinstance(outcome, Released)
            return set()
        return self._tell([id_])

    def cancel(self, ids: Collection[uuid.UUID]) -> set[uuid.UUID]:
        """Cancel what waits, ask what runs to stop; returns whom that cancelled besides."""
        ended = []
        for job in (self.jobs[id_] for id_ in ids):
            job.is_asked_to_stop |= job.status in LIVE
            if job.status == "pending":
                job.status = "cancelled"
                ended.append(job.id)
        return self._tell(ended)

    def bring_back(self, ids: Collection[uuid.UUID], by_hand: Collection[uuid.UUID]) -> None:
        """Let them wait again, each edge looked at anew; those that were retried by hand from now."""
        for job in (self.jobs[id_] for id_ in ids):
            job.status, job.refunded = "pending", job.attempt
            job.because, job.is_asked_to_stop = None, False
            job.is_due |= job.id in by_hand
        for job in (self.jobs[id_] for id_ in ids):
            job.settled = {id_ for id_ in job.parents if self.jobs[id_].status not in LIVE}

    def why_dead(self, job: Known) -> list[str]:
        """Return what keeps a dead job from coming back as things stand."""
        reasons = [f"It waits for the job {parent.id}, which is {parent.status}: retry that one, and this one follows."
                   for parent in self.dead_parents(job)]  # fmt: skip
        holder = self.holder_of(job.key) if job.key else None
        if holder is not None and holder is not job:
            reasons.append(f"Its unique key {job.key!r} is held by the job {holder.id} by now.")
        return reasons

    # How

    @staticmethod
    def _fate(job: Known, outcome: Outcome) -> str:
        """The table of a run that ends, asked to stop or not."""
        match outcome:
            case Succeeded():
                return "completed"
            case Cancelled():
                return "cancelled"
            case Failed(final=final) if final or job.attempt - job.refunded >= job.max_attempts:
                return "failed"
        return "cancelled" if job.is_asked_to_stop else "pending"

    def _tell(self, ended: Iterable[uuid.UUID]) -> set[uuid.UUID]:
        """Tell those that wait for them, and so on."""
        untold, cancelled = deque(ended), set()
        while untold:
            parent = self.jobs[untold.popleft()]
            for child in self.jobs.values():
                if parent.id not in child.parents or parent.id in child.settled:
                    continue
                if parent.status == "completed" or child.parents[parent.id] == "run":
                    child.settled.add(parent.id)
                elif child.status == "pending":
                    child.status = "cancelled"
                    cancelled.add(child.id)
                    untold.append(child.id)
        return cancelled
