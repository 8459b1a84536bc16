"""Queues and types as operators hold them back: paused, limited, let go. Workers are told, and act at their next claim.

What runs already is left alone. A limit counts live claims, so that nothing stays taken when a worker dies.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

from jobs.conf import settings
from jobs.errors import InvalidJob
from jobs.limits import NAME_RULE, valid_name
from jobs.models import PausedType, Queue
from jobs.queries import DjangoSession

LIMIT = 1_000_000


class Counts(NamedTuple):
    """How many jobs of a queue wait for a worker or their time, and how many run."""

    pending: int
    processing: int


def all_queues() -> list[tuple[Queue, Counts]]:
    """Return the queues that have work, and those with a row; a queue without one is neither paused nor limited."""
    return _counted()


def page_of_queues(*, after: str | None, limit: int) -> list[tuple[Queue, Counts]]:
    """Return up to `limit` of them by name, behind one name; only these are counted."""
    return _counted(after=after, room=limit)


def one_queue(name: str) -> tuple[Queue, Counts]:
    """Return a queue with its counts."""
    ((queue, counts),) = _counted([name])
    return queue, counts


def _counted(
    names: list[str] | None = None, *, after: str | None = None, room: int | None = None
) -> list[tuple[Queue, Counts]]:
    rows = DjangoSession().fetch("queue_counts", queues=names, after=after, room=room)
    counts = {name: Counts(*both) for name, *both in rows}
    known = Queue.objects.using(settings.DATABASE).in_bulk(list(counts))
    return [(known.get(name) or Queue(name=name), counts[name]) for name in counts]


def pause_queue(name: str, *, until: datetime | None = None) -> Queue:
    """Let no job of a queue be started, until it is resumed or until a time."""
    check_pause("queue", name, until)
    return _write_queue(name, paused=True, paused_until=until)


def resume_queue(name: str) -> Queue:
    """Let a queue go on."""
    return _write_queue(name, paused=False, paused_until=None)


def limit_queue(
    name: str,
    *,
    concurrency: int | None = None,
    concurrency_per_key: int | None = None,
    rate: float | None = None,
    burst: int | None = None,
) -> Queue:
    """Set all limits of a queue; what is None is not limited.

    concurrency: jobs that run at once, over all workers; 0 for none. concurrency_per_key: the same for the jobs of one
    `concurrency_key`. rate: starts per second in the long run; burst: starts at once after a rest. Raises `InvalidJob`.
    """
    limits = {"concurrency": concurrency, "concurrency_per_key": concurrency_per_key, "rate": rate, "burst": burst}
    check_limits(name, **limits)
    return _write_queue(name, **limits)


def check_limits(name: str, **limits: Any) -> None:
    """Raise `InvalidJob` for what `limit_queue` would refuse."""
    _check_name("queue", name)
    rate, burst = limits["rate"], limits["burst"]
    for field, least in (("concurrency", 0), ("concurrency_per_key", 1), ("burst", 1)):
        value = limits[field]
        if value is not None and not (type(value) is int and least <= value <= LIMIT):
            raise InvalidJob(f"{field} is {value!r}; use a whole number from {least} to {LIMIT:,}.", field=field)
    if rate is not None and not (type(rate) in (int, float) and 0 < rate <= LIMIT):
        raise InvalidJob(f"rate is {rate!r}; use starts per second above 0, at most {LIMIT:,}.", field="rate")
    if burst is not None and rate is None:
        raise InvalidJob("burst is given without a rate; give both.", field="burst")


def pause_type(name: str, *, until: datetime | None = None) -> PausedType:
    """Let no job of a type be started, in whatever queue."""
    check_pause("type", name, until)
    with transaction.atomic(using=settings.DATABASE):
        row, _ = PausedType.objects.using(settings.DATABASE).update_or_create(type=name, defaults={"until": until})
        _tell()
    return row


def page_of_paused_types(*, after: str | None, limit: int) -> list[PausedType]:
    """Return up to `limit` types that are paused now, by name, behind one name; a pause that is over is none."""
    paused = Q(until=None) | Q(until__gt=Now())
    found = PausedType.objects.using(settings.DATABASE).filter(paused).order_by("type")
    return list((found if after is None else found.filter(type__gt=after))[:limit])


def check_pause(what: str, name: str, until: datetime | None) -> None:
    """Raise `InvalidJob` for what `pause_queue` or `pause_type` would refuse; `what` is `queue` or `type`."""
    _check_name(what, name)
    if until is not None and (timezone.is_naive(until) or until <= timezone.now()):
        raise InvalidJob(f"until is {until}; use an aware time in the future.", field="until")


def resume_type(name: str) -> None:
    """Let a type go on; harmless if it is not paused."""
    _check_name("type", name)
    with transaction.atomic(using=settings.DATABASE):
        PausedType.objects.using(settings.DATABASE).filter(type=name).delete()
        _tell()


def _write_queue(name: str, **fields: Any) -> Queue:
    _check_name("queue", name)
    values: Mapping[str, Any] = fields
    with transaction.atomic(using=settings.DATABASE):
        row, _ = Queue.objects.using(settings.DATABASE).update_or_create(name=name, defaults=values)
        _tell()
    return row


def _tell() -> None:
    DjangoSession().fetch("tell_workers", word="queues")


def _check_name(what: str, name: str) -> None:
    if not valid_name(name):
        raise InvalidJob(f"{what} is {name!r}; {NAME_RULE}", field=what)
