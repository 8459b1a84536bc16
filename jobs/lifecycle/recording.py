"""How a run that ended is written: the one door out of `processing`, behind the fence.

Every write carries id, status, attempt and worker. A row that does not match them belongs to somebody else by now:
nothing is written about it, and the caller is told. What becomes final settles its dependants in the same transaction.
"""

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from jobs import storable
from jobs.claims import Claim, Ended
from jobs.conf import settings
from jobs.outcomes import Cancelled, Failed, Released, Succeeded
from jobs.queries import Session
from jobs.registry import registry
from jobs.signals import Change
from jobs.states import FINAL, EventKind, Status

_LONGEST_DELAY = 10 * 366 * 24 * 3600.0  # seconds; whatever a policy asks for, the date stays within the calendar


@dataclass(slots=True)
class Recorded:
    """What was written, and whose claim was lost."""

    changes: list[Change] = field(default_factory=list)
    lost: list[Ended] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Ending:
    """What a run that did not succeed does to its job."""

    status: Status
    kind: EventKind
    delay: float = 0.0  # seconds until it may be claimed again
    keep_run_at: bool = True  # keeps its age, and so its place in the queue
    refund: int = 0
    error: str | None = None  # None leaves the last error as it is
    note: str = ""
    traceback: str = ""


def record(session: Session, worker_id: uuid.UUID, ended: Sequence[Ended]) -> Recorded:
    """Write how runs of one worker ended; call it inside a transaction."""
    recorded = Recorded()
    for batch in _without_repeats(ended):
        succeeded = [end for end in batch if isinstance(end.outcome, Succeeded)]
        others = [end for end in batch if not isinstance(end.outcome, Succeeded)]
        final = []
        if succeeded:
            final += _complete(session, worker_id, succeeded, recorded)
        if others:
            final += _end(session, worker_id, others, recorded)
        if final:
            settle(session, final)
    return recorded


def settle(session: Session, ids: Sequence[uuid.UUID]) -> None:
    """Tell the dependants of jobs that have just become final; call it in the transaction that made them so."""
    session.fetch("settle", ids=list(ids))


def _without_repeats(ended: Sequence[Ended]) -> Iterator[Sequence[Ended]]:
    """Split so that no batch names a job twice: an old attempt's end may wait beside that of the new one."""
    remaining: Sequence[Ended] = ended
    while remaining:
        batch = {end.claim.id: end for end in reversed(remaining)}
        yield list(batch.values())
        remaining = [end for end in remaining if batch[end.claim.id] is not end] if len(batch) < len(remaining) else ()


def _complete(session: Session, worker_id: uuid.UUID, ended: Sequence[Ended], recorded: Recorded) -> list[uuid.UUID]:
    rows = session.fetch(
        "complete",
        worker=worker_id,
        ids=[end.claim.id for end in ended],
        attempts=[end.claim.attempt for end in ended],
        results=[end.outcome.result for end in ended if isinstance(end.outcome, Succeeded)],
        durations=[end.duration for end in ended],
    )
    written = {row[0] for row in rows}
    for end in ended:
        if end.claim.id in written:
            recorded.changes.append(_change(end.claim, Status.COMPLETED, EventKind.COMPLETED))
        else:
            recorded.lost.append(end)
    return list(written)


def _end(session: Session, worker_id: uuid.UUID, ended: Sequence[Ended], recorded: Recorded) -> list[uuid.UUID]:
    endings = [_ending(end) for end in ended]
    rows = session.fetch(
        "end",
        worker=worker_id,
        ids=[end.claim.id for end in ended],
        attempts=[end.claim.attempt for end in ended],
        durations=[end.duration for end in ended],
        statuses=[str(ending.status) for ending in endings],
        kinds=[str(ending.kind) for ending in endings],
        delays=[min(ending.delay, _LONGEST_DELAY) for ending in endings],
        keep_run_at=[ending.keep_run_at for ending in endings],
        refunds=[ending.refund for ending in endings],
        errors=[ending.error for ending in endings],
        notes=[ending.note for ending in endings],
        tracebacks=[ending.traceback for ending in endings],
    )
    written = {row[0]: row[1] for row in rows}
    for end, ending in zip(ended, endings, strict=True):
        if (status := written.get(end.claim.id)) is None:
            recorded.lost.append(end)
        else:
            kind = EventKind.CANCELLED if status == Status.CANCELLED else ending.kind
            recorded.changes.append(_change(end.claim, status, kind, ending.note))
    return [id_ for id_, status in written.items() if status in FINAL]


def _ending(end: Ended) -> _Ending:
    """Decide what becomes of a job whose run did not succeed."""
    limit = settings.MAX_ERROR_CHARACTERS
    match end.outcome:
        case Released(reason, delay):
            note = storable.text(reason, limit)
            moves = delay > 0
            return _Ending(Status.PENDING, EventKind.RELEASED, delay, not moves, 1, note if moves else None, note)
        case Cancelled(reason):
            return _Ending(Status.CANCELLED, EventKind.CANCELLED, note=storable.text(reason, limit))
        case Failed(error, traceback, lost):
            error, traceback = storable.text(error, limit), storable.text(traceback, limit)
            if end.claim.is_last_attempt:
                return _Ending(Status.FAILED, EventKind.DEAD, error=error, note=error, traceback=traceback)
            delay = registry.backoff_of(end.claim.type).delay(end.claim.attempt - end.claim.attempts_refunded)
            kind = EventKind.LOST if lost else EventKind.FAILED
            return _Ending(Status.PENDING, kind, delay, False, 0, error, error, traceback)
    raise TypeError(f"{end.outcome!r} is no outcome of a run that did not succeed.")


def _change(claim: Claim, status: str, kind: str, error: str = "") -> Change:
    return Change(claim.id, status, kind, claim.attempt, claim.type, claim.queue, error)
