"""What of a job that waits may still be changed: payload, queue, priority, and when it runs."""

import functools
import json
import uuid
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction

from jobs.conf import settings
from jobs.drafts import NewJob, Options, drafts_of
from jobs.errors import InvalidJob, JobNotFound, TransitionRefused
from jobs.models import Job
from jobs.patience import patiently
from jobs.queries import DjangoSession
from jobs.signals import ByOperator, Change, announce
from jobs.states import EventKind, Status


def edit(
    job_id: uuid.UUID,
    *,
    actor: str,
    payload: Mapping[str, Any] | None = None,
    queue: str | None = None,
    priority: float | None = None,
    run_at: datetime | None = None,
) -> None:
    """Change a pending job; what is None stays. `actor` is kept in the history, with what was changed.

    Raises `JobNotFound`, `TransitionRefused` once it was claimed, and `InvalidJob` for what no job could have.
    """
    job = Job.objects.using(settings.DATABASE).only("type", "payload").filter(pk=job_id).first()
    if job is None:
        raise JobNotFound(f"There is no job {job_id}.")
    wanted = {"payload": payload, "queue": queue, "priority": priority, "run_at": run_at}
    changed = {name: value for name, value in wanted.items() if value is not None}
    if not changed:
        raise InvalidJob(f"Nothing to change was given; give {', '.join(wanted)}.", field="payload")
    options = Options(queue=queue, priority=priority, run_at=run_at)
    (draft,) = drafts_of([NewJob(job.type, job.payload if payload is None else payload, options)])
    terms = draft.terms
    patiently(functools.partial(_write, job_id, actor, changed, {
        "payload": None if payload is None else draft.text,
        "queue": None if queue is None else terms.queue,
        "priority": None if priority is None else terms.priority,
        "run_at": terms.run_at,
    }))  # fmt: skip


def _write(job_id: uuid.UUID, actor: str, changed: Mapping[str, Any], values: Mapping[str, Any]) -> None:
    session = DjangoSession()
    note = "; ".join(f"{name}: {_shown(value)}" for name, value in changed.items())
    with session.transaction():
        rows = session.fetch("edit", id=job_id, actor=actor[:150], note=note, horizon=settings.horizon, **values)
        if not rows:
            raise JobNotFound(f"There is no job {job_id}.")
        ((status, written, _),) = rows
        if not written:
            raise TransitionRefused(f"It is {status}; only a job that is pending can be edited.")
        change = Change(job_id, Status.PENDING.value, EventKind.EDITED, 0)
        transaction.on_commit(lambda: announce(ByOperator, [change]), using=settings.DATABASE, robust=True)


def _shown(value: Any) -> str:
    text = value.isoformat() if isinstance(value, datetime) else json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= 500 else f"{text[:500]} ..."
