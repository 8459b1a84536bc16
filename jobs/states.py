"""The words for where a job stands, and the one table of the changes that are possible.

It decides nothing and writes nothing: `jobs.lifecycle` is the only writer, and asks here. The diagram in
`docs/states.md` is made from this table.
"""

from django.db import models


class Status(models.TextChoices):
    """What is stored. These are the API's words."""

    PENDING = "pending", "Pending"  # waits: for its time, its parents, or a worker
    PROCESSING = "processing", "Processing"  # claimed by one worker, whose lease stands
    COMPLETED = "completed", "Completed"  # the handler returned; its result is kept
    FAILED = "failed", "Failed"  # out of attempts: a dead letter, until somebody retries it
    CANCELLED = "cancelled", "Cancelled"  # somebody did not want it any more


class Phase(models.TextChoices):
    """What is shown: a status made precise. Derived when read, never stored."""

    BLOCKED = "blocked", "Blocked"  # pending, and a parent is not settled
    SCHEDULED = "scheduled", "Scheduled"  # pending, and its time has not come
    RETRYING = "retrying", "Retrying"  # pending, after a failed attempt
    READY = "ready", "Ready"  # pending, and the next free worker may take it
    RUNNING = "running", "Running"  # processing
    CANCELLING = "cancelling", "Cancelling"  # processing, and asked to stop
    COMPLETED = "completed", "Completed"
    FAILED = "failed", "Failed"
    CANCELLED = "cancelled", "Cancelled"


# status -> {status it may change to: what does that}
TRANSITIONS: dict[Status, dict[Status, str]] = {
    Status.PENDING: {
        Status.PROCESSING: "claim",
        Status.CANCELLED: "cancel, cascade or expiry",
    },
    Status.PROCESSING: {
        Status.COMPLETED: "success",
        Status.PENDING: "retry, snooze, hand-back or rescue",
        Status.FAILED: "attempts used up, or abort",
        Status.CANCELLED: "cancel",
    },
    Status.FAILED: {Status.PENDING: "retry by hand or cascade"},
    Status.CANCELLED: {Status.PENDING: "retry by hand or cascade"},
    Status.COMPLETED: {},
}

FINAL = frozenset({Status.COMPLETED, Status.FAILED, Status.CANCELLED})
RETRYABLE = frozenset(status for status, targets in TRANSITIONS.items() if status in FINAL and targets)


def can_change(current: str, wanted: str) -> bool:
    """Whether the table knows a way from `current` to `wanted`."""
    return Status(wanted) in TRANSITIONS[Status(current)]


class EventKind(models.TextChoices):
    """What happened to a job: one word per row of its history."""

    COMPLETED = "completed", "Completed"
    FAILED = "failed", "Attempt failed, will be retried"
    DEAD = "dead", "Attempt failed, no attempts left"
    RELEASED = "released", "Handed back"
    SNOOZED = "snoozed", "Put off by its handler"
    LOST = "lost", "Worker lost"
    CANCEL_REQUESTED = "cancel_requested", "Cancellation asked for"
    CANCELLED = "cancelled", "Cancelled"
    EXPIRED = "expired", "Not started in time"
    LOGGED = "logged", "Said by its handler"
    RETRIED = "retried", "Retried by hand"
    REVIVED = "revived", "Waits again, since what it waits for was retried"
    EDITED = "edited", "Edited by hand"


class OnFailure(models.TextChoices):
    """What an edge does to the child when the parent fails or is cancelled."""

    CANCEL = "cancel", "Cancel the child"
    RUN = "run", "Run the child anyway"


class UniqueScope(models.TextChoices):
    """How long a job holds its unique key."""

    PENDING = "pending", "Until it is claimed"
    UNFINISHED = "pending_and_processing", "Until it has ended"


class OnConflict(models.TextChoices):
    """What an enqueue does whose unique key is held by another job."""

    RETURN = "return", "Return the other job"
    REPLACE = "replace", "Give the other job this payload and time, unless it was claimed"
    RAISE = "raise", "Refuse"


class SeriesMode(models.TextChoices):
    """From where a series counts on."""

    GRID = "grid", "Slots are fixed by the rule and the anchor"
    AFTER = "after", "The next run follows the end of the last"


class CatchUpPolicy(models.TextChoices):
    """What becomes of slots that were missed; the words of `scheduling.CatchUp`."""

    SKIP = "skip", "Nothing"
    ONE = "one", "One run for all of them"
    ALL = "all", "A run for each, up to the limit"


class Overlap(models.TextChoices):
    """What a slot does while an earlier run has not ended."""

    SKIP = "skip", "Leave it out"
    ALLOW = "allow", "Run beside it"


def diagram() -> str:
    """Return the table of transitions as a Mermaid state diagram."""
    ways = [f"    {a} --> {b}: {what}" for a, targets in TRANSITIONS.items() for b, what in targets.items()]
    ends = [f"    {status} --> [*]" for status, targets in TRANSITIONS.items() if not targets]
    return "\n".join(["stateDiagram-v2", f"    [*] --> {Status.PENDING}: enqueue", *ways, *ends])
