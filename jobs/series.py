"""Series as people keep them: made, edited, paused, run by hand. What is saved can fire, or is refused.

An edit of the rule and the end of a pause move the marker to now: what was not due while the rule was another one, or
off, is not made up for. Workers are told, so that they look again at once.
"""

import copy
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from jobs.conf import settings
from jobs.drafts import NewJob, Options, drafts_of
from jobs.enqueueing import enqueue
from jobs.errors import InvalidJob, SeriesNotFound, TransitionRefused
from jobs.limits import NAME_RULE, valid_name
from jobs.models import Job, Series
from jobs.queries import DjangoSession
from jobs.recurring import first_slot, rule_of
from jobs.states import CatchUpPolicy, Overlap, SeriesMode
from scheduling import InvalidRule, upcoming

PREVIEW = 5  # slots
_RULE = ("interval", "cron", "zone", "mode", "starts_at")
_FOLLOWING = ("next_at", "fault")  # worked out anew with every change
_WORDS = {"mode": SeriesMode, "catch_up": CatchUpPolicy, "overlap": Overlap}
_MICROSECOND = timedelta(microseconds=1)


def make_series(name: str, type: str, payload: Mapping[str, Any] | None = None, **fields: Any) -> Series:  # noqa: A002
    """Make a series of jobs of the type called `type`; the fields are those of `Series`.

    Without `starts_at` it begins now, and its first slot is one interval away. Raises `InvalidJob` for what could never
    fire, and for a name that another series has.
    """
    return _save(_new(name, type, payload, fields), insert=True)


def check_series(name: str, type: str, payload: Mapping[str, Any] | None = None, **fields: Any) -> None:  # noqa: A002
    """Raise what `make_series` would raise."""
    _new(name, type, payload, fields)
    if Series.objects.using(settings.DATABASE).filter(name=name).exists():
        raise _name_taken(name)


def _new(name: str, type_: str, payload: Mapping[str, Any] | None, fields: Mapping[str, Any]) -> Series:
    """Return a series that has been checked and not been saved."""
    now = timezone.now()
    series = Series(name=name, type=type_, payload=dict(payload or {}), **{"starts_at": None, **fields})
    counts_from_now = series.starts_at is None and series.mode == SeriesMode.GRID
    series.starts_at = series.starts_at or now
    series.last_slot = now if counts_from_now else max(now, series.starts_at) - _MICROSECOND
    _prepare(series)
    return series


def get_series(name: str) -> Series:
    """Return the series with this name; `SeriesNotFound` if there is none."""
    found = Series.objects.using(settings.DATABASE).filter(name=name).first() if valid_name(name) else None
    if found is None:
        raise SeriesNotFound(f"There is no series {name!r}.")
    return found


def page_of_series(*, after: str | None, limit: int) -> list[Series]:
    """Return up to `limit` series by name, behind one name."""
    found = Series.objects.using(settings.DATABASE).order_by("name")
    return list((found if after is None else found.filter(name__gt=after))[:limit])


def delete_series(series: Series) -> None:
    """Remove a series; the jobs that it has made stay. `TransitionRefused` for one that the code declares."""
    _refuse_declared(series)
    series.delete(using=settings.DATABASE)


def edit_series(series: Series, **changes: Any) -> Series:
    """Change fields of a series; takes effect at the next tick.

    Raises as `make_series` does, and `TransitionRefused` for one that the code declares.
    """
    moved = _change(series, changes)
    return _save(series, fields=(*changes, *moved))


def check_edit(series: Series, **changes: Any) -> None:
    """Raise what `edit_series` would raise; the series stays as it is."""
    _change(copy.copy(series), changes)


def _change(series: Series, changes: Mapping[str, Any]) -> tuple[str, ...]:
    """Change a series without saving it, and return which fields moved with the changes."""
    _refuse_declared(series)
    for name, value in changes.items():
        setattr(series, name, value)
    is_another_rule = any(name in changes for name in _RULE)
    if is_another_rule:
        series.last_slot = timezone.now()
    _prepare(series)
    return ("last_slot", *_FOLLOWING) if is_another_rule else _FOLLOWING


def pause_series(series: Series) -> Series:
    """Let it make no more jobs until it is resumed; one that is declared in code stays paused through deploys."""
    series.paused = True
    return _save(series, fields=("paused",))


def resume_series(series: Series) -> Series:
    """Let it go on with the next slot from now."""
    series.paused = False
    if series.next_at is not None:  # else it waits for the end of a run
        series.last_slot = max(series.last_slot, timezone.now())
    _prepare(series)
    return _save(series, fields=("paused", "last_slot", *_FOLLOWING))


def run_now(series: Series) -> Job:
    """Make a job of it beside its slots, which stay where they are."""
    with transaction.atomic(using=settings.DATABASE):
        return _of_series(enqueue(series.type, series.payload, **_options(series)), series)


def preview(series: Series, count: int = PREVIEW) -> Sequence[datetime]:
    """Return the next slots from now, at most `count`; none while it is paused or waits for the end of a run."""
    if series.paused or series.fault or series.next_at is None:
        return []
    if series.mode == SeriesMode.AFTER:
        return [series.next_at]
    try:
        slots = upcoming(_rule(series), max(series.last_slot, series.starts_at - _MICROSECOND), count)
    except InvalidRule:  # such as a zone that is not known any more: its fault is told once it is due
        return []
    return [slot for slot in slots if series.ends_at is None or slot <= series.ends_at]


def enqueue_again_and_again(
    type: str,  # noqa: A002  the API's word
    payload: Mapping[str, Any],
    interval: str,
    **options: Any,
) -> tuple[Job, Series]:
    """Make a job, and the series that makes it again each time this interval after its end; both or none.

    Raises what `enqueue` does, and `InvalidJob` for what is no interval, or a unique key that is held.
    """
    with transaction.atomic(using=settings.DATABASE):
        job = enqueue(type, payload, **options)
        if not job.created:
            raise InvalidJob(f"The unique key is held by the job {job.pk}, which has its own ways.", field="unique_key")
        return job, series_after(job, interval)


def series_after(job: Job, interval: str) -> Series:
    """Let a job that has just been made run again and again, each time this interval after its end."""
    series = Series(name=f"job-{job.pk}", type=job.type, payload=job.payload, queue=job.queue, priority=job.priority,
                    max_attempts=job.max_attempts, interval=interval, mode=SeriesMode.AFTER, starts_at=job.run_at,
                    last_slot=job.run_at, last_job_id=job.pk)  # fmt: skip
    _check(series)
    _of_series(job, _save(series, insert=True))
    return series


def _of_series(job: Job, series: Series) -> Job:
    """Let a job that has just been made say which series it is of."""
    job.series_id = series.pk
    Job.objects.using(settings.DATABASE).filter(pk=job.pk).update(series_id=series.pk)
    return job


def _refuse_declared(series: Series) -> None:
    if series.declared:
        raise TransitionRefused(f"{series.name} is declared in code: change it there. It can be paused here.")


def _options(series: Series) -> dict[str, Any]:
    return {"queue": series.queue or None, "priority": series.priority, "max_attempts": series.max_attempts}


def _rule(series: Series) -> Any:
    return rule_of(interval=series.interval, cron=series.cron, zone=series.zone, starts_at=series.starts_at)


def _prepare(series: Series) -> None:
    """Check a series, and work out its next slot."""
    _check(series)
    waits = series.mode == SeriesMode.AFTER and series.last_job_id is not None and series.next_at is None
    series.fault = ""
    if not waits:
        fields = ("interval", "cron", "zone", "starts_at", "mode", "last_slot")
        series.next_at = first_slot(**{name: getattr(series, name) for name in fields})
    if series.next_at and series.ends_at and series.next_at > series.ends_at:
        series.next_at = None
    if series.next_at is None and not waits:
        raise InvalidJob(f"{series.name} would never fire: it ends before its next slot.", field="ends_at")


def _check(series: Series) -> None:
    if not valid_name(series.name):
        raise InvalidJob(f"name is {series.name!r}; {NAME_RULE}", field="name")
    if bool(series.interval) == bool(series.cron):
        raise InvalidJob("Give either an interval or a cron expression.", field="interval")
    for name, words in _WORDS.items():
        if getattr(series, name) not in words.values:
            raise InvalidJob(f"{name} is {getattr(series, name)!r}; use {' or '.join(words.values)}.", field=name)
    if series.cron and series.mode == SeriesMode.AFTER:
        raise InvalidJob(
            "mode after counts from the end of a run, which a cron expression cannot; use grid.", field="mode"
        )
    if not (isinstance(series.catch_up_limit, int) and 1 <= series.catch_up_limit <= 10_000):
        raise InvalidJob(f"catch_up_limit is {series.catch_up_limit!r}; use 1 to 10,000.", field="catch_up_limit")
    if not 0 <= series.jitter <= 86_400:
        raise InvalidJob(f"jitter is {series.jitter!r}; use seconds from 0 to 86,400.", field="jitter")
    try:
        _rule(series)
    except InvalidRule as error:
        raise InvalidJob(str(error), field="cron" if series.cron else "interval") from None
    drafts_of([NewJob(series.type, series.payload, Options(**_options(series)))])


def _save(series: Series, *, insert: bool = False, fields: Sequence[str] | None = None) -> Series:
    """Write a series, of one that is there already only these fields: a worker may be moving its marker just now."""
    try:
        with transaction.atomic(using=settings.DATABASE):
            series.save(using=settings.DATABASE, force_insert=insert, update_fields=fields)
            DjangoSession().fetch("tell_workers", word="series")
    except IntegrityError as error:
        if "dilamme_series_name" not in str(error):
            raise
        raise _name_taken(series.name) from None
    return series


def _name_taken(name: str) -> InvalidJob:
    return InvalidJob(f"A series is called {name!r} already; take another name.", field="name")
