"""What people and programs may do to a job from outside: cancel it, retry it. The faces call these and nothing else.

The answer says for each job whether it changed, and if not, why. A repeated or late request is harmless.
"""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from django.db import transaction

from jobs.conf import settings
from jobs.lifecycle.recording import settling
from jobs.pipeline import Row
from jobs.queries import DjangoSession
from jobs.signals import ByOperator, Change, announce
from jobs.states import FINAL, EventKind, Status


@dataclass(slots=True)
class Answer:
    """What an action did: the jobs it changed with their new status, and those it did not, each with the reason."""

    changed: dict[uuid.UUID, str] = field(default_factory=dict)
    refused: dict[uuid.UUID, str] = field(default_factory=dict)


def cancel(ids: Sequence[uuid.UUID], *, actor: str) -> Answer:
    """Cancel pending jobs at once, and ask running ones to stop. `actor` is kept in the history."""
    return _operate("cancel", ids, actor, _why_not_cancelled, _cancel_kind)


def retry(ids: Sequence[uuid.UUID], *, actor: str) -> Answer:
    """Give dead letters and cancelled jobs a new budget of attempts, from now. `actor` is kept in the history."""
    return _operate("retry", ids, actor, _why_not_retried, lambda _: EventKind.RETRIED)


def _operate(
    statement: str,
    ids: Sequence[uuid.UUID],
    actor: str,
    why_not: Callable[[str], str],
    kind: Callable[[str], EventKind],
) -> Answer:
    session = DjangoSession()
    with session.transaction():
        rows = session.fetch(statement, ids=list(ids), actor=actor[:150], horizon=settings.horizon)
        answer = _answer(ids, rows, why_not)
        if final := [id_ for id_, status in answer.changed.items() if status in FINAL]:
            session.fetch_together([settling(final)])
        changes = [Change(id_, status, kind(status), 0) for id_, status in answer.changed.items()]
        transaction.on_commit(lambda: announce(ByOperator, changes), using=settings.DATABASE, robust=True)
    return answer


def _answer(ids: Sequence[uuid.UUID], rows: Sequence[Row], why_not: Callable[[str], str]) -> Answer:
    answer = Answer()
    for id_, before, after, _ in rows:
        if after is None:
            answer.refused[id_] = why_not(before)
        else:
            answer.changed[id_] = after
    for id_ in ids:
        if id_ not in answer.changed and id_ not in answer.refused:
            answer.refused[id_] = "There is no such job."
    return answer


def _cancel_kind(status: str) -> EventKind:
    return EventKind.CANCELLED if status == Status.CANCELLED else EventKind.CANCEL_REQUESTED


def _why_not_cancelled(status: str) -> str:
    return (
        f"It is too late to cancel this job: it has {status}."
        if status != Status.CANCELLED
        else "It is cancelled already."
    )


def _why_not_retried(status: str) -> str:
    if status == Status.COMPLETED:
        return "It has completed; enqueue a new job to run it again."
    return f"It is {status}; only failed and cancelled jobs can be retried."
