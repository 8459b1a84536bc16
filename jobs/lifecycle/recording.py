"""How a run that ended is written: the one door out of `processing`, behind the fence.

Every write carries id, status, attempt and worker. A row that does not match them belongs to somebody else by now:
nothing is written about it, and the caller is told. What becomes final settles its dependants in the same transaction.
"""

import functools
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from jobs import storable
from jobs.claims import Claim, Ended
from jobs.conf import settings
from jobs.lifecycle.cascade import cascading, read_cascade, settling
from jobs.outcomes import Cancelled, Failed, Released, Snoozed, Succeeded
from jobs.pipeline import Row
from jobs.queries import Fetch, Session
from jobs.registry import registry
from jobs.signals import Change
from jobs.states import EventKind, Status

_COMPLETED: str = Status.COMPLETED.value  # a plain text, which costs less than a member on every job
_LONGEST_DELAY = 10 * 366 * 24 * 3600.0  # seconds; whatever a policy asks for, the date stays within the calendar


@dataclass(slots=True)
class Recorded:
    """What was written, and whose claim was lost."""

    changes: list[Change] = field(default_factory=list)
    lost: list[Ended] = field(default_factory=list)
    has_pending: bool = False  # whether any job went back to the queue
    has_unsettled: bool = False  # whether dependants remain to be told: see `lifecycle.settle_rest`


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


class Record:
    """How runs of one worker ended, on the way to the database and back: send `fetches`, then `read` the answers."""

    def __init__(self, worker_id: uuid.UUID, ended: Sequence[Ended]) -> None:
        self.fetches: list[Fetch] = []
        self._readers: list[_Reader] = []
        for batch in _without_repeats(ended):
            succeeded = [end for end in batch if type(end.outcome) is Succeeded]
            if succeeded:
                self._add(_completion(worker_id, succeeded), functools.partial(_read_completion, succeeded))
            if len(succeeded) < len(batch):
                others = [end for end in batch if type(end.outcome) is not Succeeded]
                endings = [_ending(end) for end in others]
                self._add(_end(worker_id, others, endings), functools.partial(_read_end, others, endings))
            self._add(settling([end.claim.id for end in batch]), lambda rows, recorded: None)  # noqa: ARG005  no news
            if len(succeeded) < len(batch):
                self._add(cascading([end.claim.id for end in others]), _read_cascaded)

    def _add(self, fetch: Fetch, reader: "_Reader") -> None:
        self.fetches.append(fetch)
        self._readers.append(reader)

    def read(self, answers: Sequence[Sequence[Row]]) -> Recorded:
        """Return what was written, given the rows of each fetch."""
        recorded = Recorded()
        for reader, rows in zip(self._readers, answers, strict=True):
            reader(rows, recorded)
        return recorded


_Reader = Callable[[Sequence[Row], Recorded], None]


def record(session: Session, worker_id: uuid.UUID, ended: Sequence[Ended]) -> Recorded:
    """Write how runs of one worker ended, in one transaction."""
    written = Record(worker_id, ended)
    return written.read(session.fetch_together(written.fetches))


def _without_repeats(ended: Sequence[Ended]) -> Iterator[Sequence[Ended]]:
    """Split so that no batch names a job twice: an old attempt's end may wait beside that of the new one."""
    if len({end.claim.id.int for end in ended}) == len(ended):  # hashed in C; it is so nearly always
        if ended:
            yield ended
        return
    remaining: Sequence[Ended] = ended
    while remaining:
        batch = {end.claim.id: end for end in reversed(remaining)}
        yield list(batch.values())
        remaining = [end for end in remaining if batch[end.claim.id] is not end] if len(batch) < len(remaining) else ()


def _completion(worker_id: uuid.UUID, ended: Sequence[Ended]) -> Fetch:
    results = [end.outcome.result for end in ended]  # type: ignore[union-attr]  # all have succeeded
    attempts = [end.claim.attempt for end in ended]
    is_first = all(attempt == 1 for attempt in attempts)
    return "complete", {
        "worker": worker_id,
        "ids": [end.claim.id for end in ended],
        # A look-up for each row is left out where all are alike, which is mostly so.
        "attempt": 1 if is_first else None,
        "attempts": None if is_first else attempts,
        "results": results if any(result is not None for result in results) else None,
        "durations": [end.duration for end in ended],
    }


def _read_completion(ended: Sequence[Ended], rows: Sequence[Row], recorded: Recorded) -> None:
    if lost := set(rows[0][0] or ()):
        recorded.lost += [end for end in ended if end.claim.id in lost]
        ended = [end for end in ended if end.claim.id not in lost]
    recorded.changes += [_change(end.claim, _COMPLETED, _COMPLETED) for end in ended]


def _end(worker_id: uuid.UUID, ended: Sequence[Ended], endings: Sequence[_Ending]) -> Fetch:
    return "end", {
        "worker": worker_id,
        "horizon": settings.horizon,
        "ids": [end.claim.id for end in ended],
        "attempts": [end.claim.attempt for end in ended],
        "durations": [end.duration for end in ended],
        "statuses": [str(ending.status) for ending in endings],
        "kinds": [str(ending.kind) for ending in endings],
        "delays": [min(ending.delay, _LONGEST_DELAY) for ending in endings],
        "keep_run_at": [ending.keep_run_at for ending in endings],
        "refunds": [ending.refund for ending in endings],
        "errors": [ending.error for ending in endings],
        "notes": [ending.note for ending in endings],
        "tracebacks": [ending.traceback for ending in endings],
    }


def _read_cascaded(rows: Sequence[Row], recorded: Recorded) -> None:
    if rows:
        recorded.changes += read_cascade(rows)
        recorded.has_unsettled = True


def _read_end(ended: Sequence[Ended], endings: Sequence[_Ending], rows: Sequence[Row], recorded: Recorded) -> None:
    written = {row[0]: row[1] for row in rows}
    for end, ending in zip(ended, endings, strict=True):
        if (status := written.get(end.claim.id)) is None:
            recorded.lost.append(end)
        else:
            overruled = status == Status.CANCELLED and ending.status != Status.CANCELLED
            kind = EventKind.CANCELLED if overruled else ending.kind
            recorded.changes.append(_change(end.claim, status, kind, ending.note))
            recorded.has_pending |= status == Status.PENDING


def _ending(end: Ended) -> _Ending:
    """Decide what becomes of a job whose run did not succeed."""
    limit = settings.MAX_ERROR_CHARACTERS
    match end.outcome:
        case Released(reason, delay):
            note = storable.text(reason, limit)
            moves = delay > 0
            return _Ending(Status.PENDING, EventKind.RELEASED, delay, not moves, 1, note if moves else None, note)
        case Snoozed(delay, reason):
            return _Ending(Status.PENDING, EventKind.SNOOZED, delay, False, 1, note=storable.text(reason, limit))
        case Cancelled(reason, expired):
            kind = EventKind.EXPIRED if expired else EventKind.CANCELLED
            return _Ending(Status.CANCELLED, kind, note=storable.text(reason, limit))
        case Failed(error, traceback, lost, final, wanted):
            error, traceback = storable.text(error, limit), storable.text(traceback, limit)
            if final or end.claim.is_last_attempt:
                return _Ending(Status.FAILED, EventKind.DEAD, error=error, note=error, traceback=traceback)
            delay = registry.delay_of(end.claim.type, end.claim.attempt - end.claim.attempts_refunded, wanted)
            kind = EventKind.LOST if lost else EventKind.FAILED
            return _Ending(Status.PENDING, kind, delay, False, 0, error, error, traceback)
    raise TypeError(f"{end.outcome!r} is no outcome of a run that did not succeed.")


def _change(claim: Claim, status: str, kind: str, error: str = "") -> Change:
    return Change(claim.id, status, kind, claim.attempt, claim.type, claim.queue, error)
