"""Jobs that are to be made: checked whole, with every default filled in, and not stored yet.

What many jobs of one call share, their terms, is checked once; each payload is checked by itself. Nothing here touches
the database.
"""

import uuid
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from django.utils import timezone

from jobs import storable
from jobs.conf import Settings, current
from jobs.errors import InvalidJob, InvalidPayload
from jobs.ids import uuid7s
from jobs.limits import (
    ATTEMPTS_RULE,
    DEPENDENCY_LIMIT,
    EARLIEST,
    KEY_RULE,
    LATEST,
    METADATA_LIMIT,
    METADATA_RULE,
    NAME_RULE,
    PRIORITY_RULE,
    TIME_RULE,
    TIMEOUT_RULE,
    valid_attempts,
    valid_key,
    valid_name,
    valid_priority,
    valid_timeout,
)
from jobs.registry import JobType, registry
from jobs.states import OnConflict, OnFailure, UniqueScope
from jobs.uniqueness import Uniqueness, uniqueness_of

_REMEMBERED = 1000  # terms
_ON_FAILURE = tuple(OnFailure.values)


@dataclass(frozen=True, slots=True)
class Options:
    """How a job is to run. What is None falls back to its type, then to the settings."""

    queue: str | None = None
    priority: float | None = None  # 1 High to 3 Low
    run_at: datetime | None = None  # aware; None for now
    max_attempts: int | None = None
    depends_on: Collection[uuid.UUID] = field(default_factory=tuple)
    on_failure: str = OnFailure.CANCEL  # what the failure of a parent does to this job
    timeout: float | None = None  # seconds a run may take
    expires_at: datetime | None = None  # aware; not started by then, it is cancelled
    unique_key: str | None = None
    unique: Collection[str] = ()  # names of the payload whose values, with the type, make the unique key
    unique_scope: str = UniqueScope.UNFINISHED
    on_conflict: str = OnConflict.RETURN
    concurrency_key: str | None = None  # jobs of a queue that are limited together
    workflow: uuid.UUID | None = None  # the graph that the job joins
    step: str = ""  # its name in that graph
    metadata: Mapping[str, Any] | None = field(default=None, hash=False)  # a small JSON object: `ctx.metadata`


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job to be made: for `enqueue_many`."""

    type: str
    payload: Mapping[str, Any] = field(default_factory=dict)
    options: Options = field(default_factory=Options)


class Terms(NamedTuple):
    """What jobs of one type and with one set of options have in common."""

    kind: JobType
    queue: str
    priority: float
    max_attempts: int
    run_at: datetime | None  # in UTC; None for now
    parents: tuple[uuid.UUID, ...]
    on_failure: OnFailure
    timeout: float | None
    expires_at: datetime | None
    concurrency_key: str | None
    workflow: uuid.UUID | None
    step: str
    metadata: str | None  # as JSON, storable
    uniqueness: Uniqueness | None

    @property
    def is_plain(self) -> bool:
        """Whether storing it needs nothing but its own row, written with defaults."""
        needs = (self.parents, self.workflow, self.step, self.uniqueness, self.timeout, self.expires_at, self.metadata)
        return not any(needs) and self.concurrency_key is None


class Draft(NamedTuple):
    """One job that may be stored as it stands."""

    id: uuid.UUID
    terms: Terms
    payload: dict[str, Any]
    text: str  # the payload as JSON, storable
    unique_key: str | None = None


def drafts_of(new_jobs: Iterable[NewJob]) -> list[Draft]:
    """Return a draft for each job, with ids that ascend in the order given; raises what is wrong with the first."""
    given = list(new_jobs)
    in_force = current()
    of_call: dict[_Origin, Terms] = {}
    drafts = []
    for new, id_ in zip(given, uuid7s(len(given)), strict=True):
        terms = _terms_of(registry.get(new.type), new.options, in_force, of_call)
        payload = terms.kind.normalise(new.payload)
        key = terms.uniqueness and terms.uniqueness.key_of(new.type, payload)
        drafts.append(Draft(id_, terms, payload, _text(new.type, payload, in_force.MAX_PAYLOAD_BYTES), key))
    return drafts


_Origin = tuple[int, int, int]  # what terms follow from, by its identity
# The terms that were worked out last; kept with what they follow from, so that its identity stays unique.
_worked_out: dict[_Origin, tuple[Terms, JobType, Options, Settings]] = {}


def _terms_of(kind: JobType, options: Options, in_force: Settings, of_call: dict[_Origin, Terms]) -> Terms:
    """Return the terms as worked out before: by any call, or for options that may change, by this one."""
    key = (id(kind), id(options), id(in_force))
    if (found := _worked_out.get(key)) is not None:
        return found[0]
    if (own := of_call.get(key)) is not None:
        return own
    terms = _terms(kind, options, in_force)
    if not _stays(options):
        of_call[key] = terms
        return terms
    if len(_worked_out) >= _REMEMBERED:
        _worked_out.clear()
    _worked_out[key] = (terms, kind, options, in_force)
    return terms


def _stays(options: Options) -> bool:
    """Whether they will say the same tomorrow: a list or a dict in them may be another one by then."""
    return options.metadata is None and isinstance(options.depends_on, tuple) and isinstance(options.unique, tuple)


def _text(name: str, payload: dict[str, Any], limit: int) -> str:
    try:
        return storable.json_text(payload, limit, "payload")
    except storable.NotStorable as error:
        raise InvalidPayload(f"{name}: {error}") from None


def _terms(kind: JobType, options: Options, in_force: Settings) -> Terms:
    """Return the options with their defaults filled in, every part of them checked."""
    queue = _first(options.queue, kind.queue, in_force.DEFAULT_QUEUE)
    priority = _first(options.priority, kind.priority, in_force.DEFAULT_PRIORITY)
    max_attempts = _first(options.max_attempts, kind.max_attempts, in_force.MAX_ATTEMPTS)
    if not valid_name(queue):
        raise InvalidJob(f"queue is {queue!r}; {NAME_RULE}", field="queue")
    if not valid_priority(priority):
        raise InvalidJob(f"priority is {priority!r}; {PRIORITY_RULE}", field="priority")
    if not valid_attempts(max_attempts):
        raise InvalidJob(f"max_attempts is {max_attempts!r}; {ATTEMPTS_RULE}", field="max_attempts")
    if options.on_failure not in _ON_FAILURE:
        raise InvalidJob(f"on_failure is {options.on_failure!r}; use cancel or run.", field="on_failure")
    if options.timeout is not None and not valid_timeout(options.timeout):
        raise InvalidJob(f"timeout is {options.timeout!r}; {TIMEOUT_RULE}", field="timeout")
    if options.concurrency_key is not None and not valid_key(options.concurrency_key):
        raise InvalidJob(f"concurrency_key is {options.concurrency_key!r:.100}; {KEY_RULE}", field="concurrency_key")
    if options.step and not valid_name(options.step):
        raise InvalidJob(f"step is {options.step!r}; {NAME_RULE}", field="step")
    return Terms(
        kind,
        queue,
        float(priority),
        max_attempts,
        _moment(options.run_at, "run_at", "scheduled_at"),
        _parents(options.depends_on),
        OnFailure(options.on_failure),
        options.timeout,
        _moment(options.expires_at, "expires_at", "expires_at"),
        options.concurrency_key,
        options.workflow,
        options.step,
        _metadata(options.metadata),
        uniqueness_of(options.unique_key, options.unique, options.unique_scope, options.on_conflict),
    )


def _first(*values: Any) -> Any:
    return next(value for value in values if value is not None)


def _moment(given: datetime | None, name: str, field: str) -> datetime | None:
    """Return the time in UTC: PostgreSQL knows no offset of 16 hours or more."""
    if given is None:
        return None
    if not isinstance(given, datetime):
        raise InvalidJob(f"{name} is {given!r}; use an aware datetime.", field=field)
    if timezone.is_naive(given):
        raise InvalidJob(f"{name} is {given} without a time zone; use an aware datetime.", field=field)
    if not EARLIEST <= given <= LATEST:
        raise InvalidJob(f"{name} is {given}; {TIME_RULE}", field=field)
    return given.astimezone(UTC)


def _parents(given: Collection[uuid.UUID]) -> tuple[uuid.UUID, ...]:
    """Return the ids of the parents, each once."""
    if isinstance(given, str) or not isinstance(given, Collection):
        raise InvalidJob(f"depends_on is {given!r}; use a list of job ids.", field="dependency_ids")
    for parent in given:
        if not isinstance(parent, uuid.UUID):
            text = f"depends_on contains {parent!r} of type {type(parent).__name__}; use ids of jobs, which are UUIDs."
            raise InvalidJob(text, field="dependency_ids")
    if len(given) > DEPENDENCY_LIMIT:
        text = f"{len(given):,} dependencies; at most {DEPENDENCY_LIMIT:,} are possible."
        raise InvalidJob(text, field="dependency_ids")
    return tuple(dict.fromkeys(given))


def _metadata(given: Mapping[str, Any] | None) -> str | None:
    """Return the metadata as JSON: what is shared by many jobs, and kept, is nothing that somebody may still change."""
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise InvalidJob(f"metadata is {given!r:.100}; {METADATA_RULE}", field="metadata")
    try:
        return storable.json_text(dict(given), METADATA_LIMIT, "metadata")
    except storable.NotStorable as error:
        raise InvalidJob(str(error), field="metadata") from None
