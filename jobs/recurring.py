"""Series: how they are kept, and how their slots become jobs.

A slot has one job, whatever is killed when and however many workers tick: the slot, the job and the marker that moves
are one statement. What a slot is, `scheduling` says; this module knows no calendar. A series that cannot fire says why
in `fault`, and stops no other.
"""

import dataclasses
import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from jobs.conf import settings
from jobs.drafts import Draft, NewJob, Options, drafts_of
from jobs.errors import DilammeError
from jobs.ids import uuid7s
from jobs.queries import Session
from jobs.registry import registry
from jobs.states import FINAL, Overlap, SeriesMode
from scheduling import CatchUp, Cron, Grid, Interval, InvalidRule, Rule, due

GRACE = 60.0  # seconds by which a slot may be late and still is no missed one
_ROOM = 100  # series in one transaction
_MICROSECOND = timedelta(microseconds=1)


class _Row(NamedTuple):
    """A series that is due, as `due_series` returns it."""

    id: int
    name: str
    type: str
    payload: dict[str, Any]
    queue: str | None
    priority: float | None
    max_attempts: int | None
    interval: str
    cron: str
    zone: str
    mode: str
    catch_up: str
    catch_up_limit: int
    overlap: str
    jitter: float
    starts_at: datetime
    ends_at: datetime | None
    last_slot: datetime
    next_at: datetime | None
    last_status: str | None  # of the job that it made last
    last_finished_at: datetime | None
    now: datetime


@dataclass(frozen=True, slots=True)
class _Plan:
    """What becomes of a series now."""

    slots: Sequence[datetime] = ()
    last_slot: datetime | None = None
    next_at: datetime | None = None
    skipped: int = 0
    fault: str = ""


def rule_of(*, interval: str, cron: str, zone: str, starts_at: datetime) -> Rule:
    """Return the rule that these fields of a series stand for; `InvalidRule` says what is wrong with them."""
    return Cron(cron, zone) if cron else Grid(Interval.parse(interval), starts_at, zone)


def first_slot(
    *, interval: str, cron: str, zone: str, starts_at: datetime, mode: str, last_slot: datetime
) -> datetime | None:
    """Return the first slot behind the marker; None if there is none. Raises `InvalidRule`."""
    rule = rule_of(interval=interval, cron=cron, zone=zone, starts_at=starts_at)
    behind = max(last_slot, starts_at - _MICROSECOND)
    return max(starts_at, last_slot) if mode == SeriesMode.AFTER else rule.after(behind)


def sync_declared(session: Session) -> None:
    """Make the series that the registered types declare what the code says."""
    declared = [(kind, kind.schedule) for kind in registry if kind.schedule is not None]
    with session.transaction():
        ((now,),) = session.fetch("clock")
        session.fetch(
            "declare_series",
            names=[kind.name for kind, _ in declared],
            intervals=[schedule.every for _, schedule in declared],
            crons=[schedule.cron for _, schedule in declared],
            zones=[schedule.zone for _, schedule in declared],
            catch_ups=[schedule.catch_up for _, schedule in declared],
            overlaps=[schedule.overlap for _, schedule in declared],
            starts=[schedule.anchor for _, schedule in declared],
            next_ats=[schedule.rule.after(now) for _, schedule in declared],
        )
        session.fetch("retire_series", types=_known_types(), declared=[kind.name for kind, _ in declared])


def tick(session: Session) -> list[UUID] | None:
    """Make the jobs of every slot that is due, and return their ids; None if another process is at it."""
    made: list[UUID] = []
    while True:
        with session.transaction():
            if not session.fetch("try_sweep", sweep="series")[0][0]:
                return None
            rows = [_Row._make(row) for row in session.fetch("due_series", types=_known_types(), room=_ROOM)]
            for row in rows:
                made += _fire(session, row)
        if len(rows) < _ROOM:
            return made


def seconds_to_next(session: Session) -> float | None:
    """Return in how many seconds to tick again; None if no series waits for its time."""
    ((seconds, waits_for_a_run),) = session.fetch("next_series", types=_known_types())
    if waits_for_a_run:
        return 1.0 if seconds is None else min(1.0, seconds)
    return seconds  # type: ignore[no-any-return]


def _known_types() -> list[str]:
    return [kind.name for kind in registry]


def _fire(session: Session, row: _Row) -> list[UUID]:
    try:
        plan = _plan(row)
        draft = _draft(row)
    except (DilammeError, InvalidRule) as error:
        plan, draft = _Plan(fault=str(error)), None
    if draft is None:
        plan = dataclasses.replace(plan, slots=())
    terms = draft.terms if draft else None
    ((made, _),) = session.fetch(
        "fire",
        series=row.id,
        ids=uuid7s(len(plan.slots)),
        slots=list(plan.slots),
        run_ats=[slot + _put_off(row.jitter) for slot in plan.slots],
        type=row.type,
        queue=terms.queue if terms else "",
        priority=terms.priority if terms else 1.0,
        payload=draft.text if draft else "{}",
        max_attempts=terms.max_attempts if terms else 1,
        last_slot=plan.last_slot,
        next_at=plan.next_at,
        skipped=plan.skipped,
        fault=plan.fault,
        horizon=settings.horizon,
    )
    return list(made)


def _draft(row: _Row) -> Draft:
    options = Options(queue=row.queue, priority=row.priority, max_attempts=row.max_attempts)
    return drafts_of([NewJob(row.type, row.payload, options)])[0]


def _put_off(jitter: float) -> timedelta:
    return timedelta(seconds=random.uniform(0, jitter)) if jitter else timedelta()  # noqa: S311  spreads starts


def _plan(row: _Row) -> _Plan:
    return _plan_after(row) if row.mode == SeriesMode.AFTER else _plan_grid(row)


def _plan_grid(row: _Row) -> _Plan:
    rule = rule_of(interval=row.interval, cron=row.cron, zone=row.zone, starts_at=row.starts_at)
    until = row.now if row.ends_at is None else min(row.now, row.ends_at)
    policy = CatchUp(row.catch_up)
    found = due(rule, row.last_slot, until, catch_up=policy, limit=row.catch_up_limit, grace=GRACE)
    latest = row.now - timedelta(seconds=GRACE) if policy == CatchUp.SKIP else row.starts_at
    slots = [slot for slot in found.slots if slot >= max(row.starts_at, latest)]
    following = rule.after(max(row.now, row.starts_at - _MICROSECOND))
    next_at = following if following and _is_before_end(row, following) else None
    if slots and row.overlap == Overlap.SKIP and row.last_status not in (None, *FINAL):
        return _Plan((), found.last, next_at, skipped=len(slots))
    return _Plan(slots, found.last, next_at)


def _plan_after(row: _Row) -> _Plan:
    """Count on from the end of the last run; while it goes on there is no next slot."""
    if row.last_status is not None and row.last_status not in FINAL:
        return _Plan()
    slot = row.next_at
    if slot is None:
        slot = Interval.parse(row.interval).after(row.last_finished_at or row.last_slot, row.zone)
    if not _is_before_end(row, slot):
        return _Plan(fault="It has ended.")
    return _Plan((slot,), slot, None) if slot <= row.now else _Plan(next_at=slot)


def _is_before_end(row: _Row, slot: datetime) -> bool:
    return row.ends_at is None or slot <= row.ends_at
