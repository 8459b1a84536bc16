"""What people and programs may do to a job from outside: cancel it, retry it. The faces call these and nothing else.

The answer says for each job whether it changed, and if not, why. A repeated or late request is harmless. Each action is
one transaction, or a part of the caller's; what it does to dependants beyond the first thousand follows in others.
"""

import functools
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from django.db import transaction

from jobs.conf import settings
from jobs.lifecycle.cascade import cascading, read_cascade, settle_some, settling
from jobs.lifecycle.retrying import retry_held
from jobs.patience import patiently
from jobs.queries import DjangoSession
from jobs.signals import ByOperator, Change, announce
from jobs.states import EventKind, Status

_BATCH = 1000  # jobs of a workflow that are acted on in one transaction


@dataclass(slots=True)
class Answer:
    """What an action did: the jobs it changed with their new status, and those it did not, each with the reason.

    `also` holds what changed with them: dependants that were cancelled, or that wait again.
    """

    changed: dict[uuid.UUID, str] = field(default_factory=dict)
    refused: dict[uuid.UUID, str] = field(default_factory=dict)
    also: dict[uuid.UUID, str] = field(default_factory=dict)


def cancel(ids: Sequence[uuid.UUID], *, actor: str) -> Answer:
    """Cancel pending jobs at once, with what waits for them, and ask running ones to stop.

    `actor` is kept in the history.
    """
    return patiently(functools.partial(_cancel, ids, actor))


def retry(ids: Sequence[uuid.UUID], *, actor: str, downstream: bool = True) -> Answer:
    """Give dead letters and cancelled jobs a new budget of attempts, from now.

    With `downstream` what was cancelled because of them waits again, unless it waits for another job that is dead.
    `actor` is kept in the history.
    """
    return patiently(functools.partial(_retry, ids, actor, downstream))


def cancel_workflow(workflow_id: uuid.UUID, *, actor: str) -> Answer:
    """Cancel all jobs of a workflow that have not ended, those that are added meanwhile included."""
    return _through_workflow(workflow_id, [Status.PENDING, Status.PROCESSING], functools.partial(cancel, actor=actor))


def retry_workflow(workflow_id: uuid.UUID, *, actor: str, downstream: bool = True) -> Answer:
    """Retry all jobs of a workflow that failed; with `downstream` also what was cancelled because of them."""
    return _through_workflow(workflow_id, [Status.FAILED], functools.partial(retry, actor=actor, downstream=downstream))


def _through_workflow(
    workflow_id: uuid.UUID, statuses: Sequence[Status], act: Callable[[Sequence[uuid.UUID]], Answer]
) -> Answer:
    """Act on its jobs in batches, parents first, until none is left that was not seen."""
    whole, seen = Answer(), uuid.UUID(int=0)
    while True:
        rows = DjangoSession().fetch(
            "in_workflow", workflow=workflow_id, statuses=list(statuses), behind=seen, room=_BATCH
        )
        if not rows:
            return whole
        seen = rows[-1][0]
        answer = act([id_ for (id_,) in rows])
        whole.changed |= answer.changed
        whole.refused |= answer.refused
        whole.also |= answer.also


def _cancel(ids: Sequence[uuid.UUID], actor: str) -> Answer:
    session = DjangoSession()
    with session.transaction():
        rows = session.fetch("cancel", ids=list(ids), actor=actor[:150])
        answer = Answer(changed={id_: after for id_, _, after, _ in rows if after is not None})
        answer.refused = {id_: _why_not_cancelled(before) for id_, before, after, _ in rows if after is None}
        changes = _changes(answer.changed, _cancel_kind)
        if final := [id_ for id_, status in answer.changed.items() if status == Status.CANCELLED]:
            _, cascaded = session.fetch_together([settling(final), cascading(final)])
            changes += read_cascade(cascaded)
            answer.also = {change.job_id: change.status for change in changes[len(answer.changed) :]}
            transaction.on_commit(functools.partial(_settle_rest, answer), using=settings.DATABASE, robust=True)
        _tell(changes)
    return _complete(answer, ids)


def _retry(ids: Sequence[uuid.UUID], actor: str, downstream: bool) -> Answer:
    session = DjangoSession()
    with session.transaction():
        result = retry_held(session, ids, actor[:150], downstream=downstream)
        answer = Answer(
            changed=dict.fromkeys(result.retried, str(Status.PENDING)),
            refused=result.refused,
            also=dict.fromkeys(result.revived, str(Status.PENDING)),
        )
        _tell(
            _changes(answer.changed, lambda _: EventKind.RETRIED) + _changes(answer.also, lambda _: EventKind.REVIVED)
        )
    return _complete(answer, ids)


def _complete(answer: Answer, ids: Sequence[uuid.UUID]) -> Answer:
    """Let the answer speak of every job that was asked for."""
    for id_ in ids:
        if id_ not in answer.changed and id_ not in answer.refused:
            answer.refused[id_] = "There is no such job."
    return answer


def _changes(statuses: Mapping[uuid.UUID, str], kind: Callable[[str], EventKind]) -> list[Change]:
    return [Change(id_, status, kind(status), 0) for id_, status in statuses.items()]


def _tell(changes: Sequence[Change]) -> None:
    transaction.on_commit(lambda: announce(ByOperator, changes), using=settings.DATABASE, robust=True)


def _settle_rest(answer: Answer) -> None:
    """Go on with a cascade, each batch a transaction of its own; should it break off, a worker goes on.

    Outside a transaction of the caller's the answer tells of all of it.
    """
    session = DjangoSession()
    while True:
        count, changes = patiently(functools.partial(settle_some, session))
        announce(ByOperator, changes)
        answer.also |= {change.job_id: change.status for change in changes}
        if not count:
            return


def _cancel_kind(status: str) -> EventKind:
    return EventKind.CANCELLED if status == Status.CANCELLED else EventKind.CANCEL_REQUESTED


def _why_not_cancelled(status: str) -> str:
    return (
        f"It is too late to cancel this job: it has {status}."
        if status != Status.CANCELLED
        else "It is cancelled already."
    )
