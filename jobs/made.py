"""What a call that makes jobs returns: the jobs as Django would read them, built when they are looked at.

Most callers do not look at what they made ten thousand of, and the objects would cost more than the jobs.
"""

import functools
import json
import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, overload

from jobs.conf import settings
from jobs.drafts import Draft
from jobs.models import Job
from jobs.states import Status, UniqueScope


class Made(Sequence[Job]):
    """The jobs that one call has made: each is built when it is first looked at, and kept.

    In the place of one whose unique key was held stands the job that holds it, as it is stored.
    """

    def __init__(self, drafts: Sequence[Draft], unmet: Mapping[uuid.UUID, int]) -> None:
        self._drafts = drafts
        self._made_at: datetime | None = None  # until the database has said so
        self._unmet = unmet  # by id: for how many parents a job waits
        self.existing: dict[uuid.UUID, uuid.UUID] = {}  # instead of these, those jobs exist already
        self.replaced: set[uuid.UUID] = set()  # made, and given another payload by the same call
        self._alias = settings.DATABASE
        self._built: dict[int, Job] = {}

    def __len__(self) -> int:
        return len(self._drafts)

    @overload
    def __getitem__(self, index: int) -> Job: ...
    @overload
    def __getitem__(self, index: slice) -> list[Job]: ...
    def __getitem__(self, index: int | slice) -> Job | list[Job]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        number = range(len(self))[index]
        if (job := self._built.get(number)) is None:
            job = self._built[number] = self._build(self._drafts[number])
        return job

    def build(self) -> None:
        """Build all of them, for a caller who is sure to look."""
        for number in range(len(self)):
            self[number]

    def date(self, made_at: datetime) -> None:
        """Say when they were made."""
        self._made_at = made_at
        for job in self._built.values():
            job.created_at = made_at
            if job.run_at is None:
                job.scheduled_at = job.run_at = made_at

    def _build(self, draft: Draft) -> Job:
        stored = self.existing.get(draft.id) or (draft.id if draft.id in self.replaced else None)
        if stored is not None:
            job = Job.objects.using(self._alias).get(pk=stored)
            job.created = stored == draft.id
            return job
        row = _values(draft, self._made_at, self._unmet.get(draft.id, 0))
        fields = _fields()
        return Job.from_db(self._alias, fields, list(map(row.get, fields)))


class Spooled(Made):
    """The jobs that one call has made while the database was away."""

    def _build(self, draft: Draft) -> Job:
        job = super()._build(draft)
        job.is_spooled, job._state.adding = True, True  # noqa: SLF001  it is not in the database yet
        return job


@functools.cache
def _fields() -> list[str]:
    return [column.attname for column in Job._meta.concrete_fields]  # noqa: SLF001  Django's documented API


def _values(draft: Draft, made_at: datetime | None, unmet: int) -> dict[str, Any]:
    """Return the columns of a new job by name; those that are missing here are null."""
    terms = draft.terms
    run_at = terms.run_at or made_at
    return {
        "id": draft.id,
        "payload": draft.payload,
        "metadata": None if terms.metadata is None else json.loads(terms.metadata),
        "type": terms.kind.name,
        "queue": terms.queue,
        "status": Status.PENDING.value,
        "priority": terms.priority,
        "scheduled_at": run_at,
        "run_at": run_at,
        "created_at": made_at,
        "attempt": 0,
        "attempts_refunded": 0,
        "max_attempts": terms.max_attempts,
        "unmet": unmet,
        "last_error": "",
        "workflow_id": terms.workflow,
        "step": terms.step,
        "concurrency_key": terms.concurrency_key,
        "timeout": terms.timeout,
        "expires_at": terms.expires_at,
        "unique_key": draft.unique_key,
        "unique_while_running": terms.uniqueness is None or terms.uniqueness.scope == UniqueScope.UNFINISHED,
    }
