"""Why a job is not running: every reason that holds now, the one that decides first, with what would change it.

It reads what the claim reads, and nothing that the claim does not heed. An answer is true of the moment it was given.
"""

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from django.db.models import Count, Q, QuerySet

from jobs import insights
from jobs.conf import settings
from jobs.errors import JobNotFound
from jobs.models import Job, JobDependency, JobEvent, PausedType, Queue, Worker
from jobs.queries import DjangoSession
from jobs.states import FINAL, EventKind, Status

_SHOWN = 10  # jobs named in one reason
_COUNTED = 10_000  # more urgent jobs that are counted


class Why(StrEnum):
    """Kinds of reasons."""

    ENDED = "ended"
    RUNNING = "running"
    LOST = "lost"  # processing, and its worker's lease has run out
    PARENTS = "parents"
    NOT_DUE = "not_due"
    RETRY = "retry"
    QUEUE_PAUSED = "queue_paused"
    TYPE_PAUSED = "type_paused"
    NO_WORKER = "no_worker"
    LIMIT = "limit"
    KEY_LIMIT = "key_limit"
    RATE = "rate"
    BEHIND = "behind"
    READY = "ready"
    KEY_HELD = "unique_key"


@dataclass(frozen=True, slots=True)
class Reason:
    """One thing that holds a job back, in words, and the jobs it is about."""

    why: Why
    text: str
    jobs: list[uuid.UUID] = field(default_factory=list)
    until: datetime | None = None  # when it is over by itself


@dataclass(frozen=True, slots=True)
class Explanation:
    """Where a job stands, and all reasons why it is not running."""

    job_id: uuid.UUID
    status: str
    reasons: list[Reason]


def explain(job_id: uuid.UUID) -> Explanation:
    """Say why a job is not running; raises `JobNotFound`."""
    job = insights.light_jobs().filter(pk=job_id).first()
    if job is None:
        raise JobNotFound(f"There is no job {job_id}.")
    ((now,),) = DjangoSession().fetch("clock")
    if job.status in FINAL:
        reasons = list(_of_ended(job))
    elif job.status == Status.PROCESSING:
        reasons = list(_of_running(job, now))
    else:
        reasons = list(_of_waiting(job, now))
    return Explanation(job.pk, job.status, reasons)


def _of_ended(job: Job) -> Iterator[Reason]:
    yield Reason(Why.ENDED, _how_it_ended(job), [job.cancelled_because] if job.cancelled_because else [])
    if job.status == Status.COMPLETED or job.unique_key is None:
        return
    for _, holder in DjangoSession().fetch("key_holders", keys=[job.unique_key]):
        text = f"It cannot be retried while the job {holder} holds its unique key {job.unique_key!r}."
        yield Reason(Why.KEY_HELD, text, [holder])


def _how_it_ended(job: Job) -> str:
    match job.status:
        case Status.COMPLETED:
            return "It has completed."
        case Status.FAILED:
            return f"It is a dead letter after {job.attempt} attempts, until somebody retries it: {job.last_error}"
    if job.cancelled_because:
        root = Job.objects.using(settings.DATABASE).filter(pk=job.cancelled_because).values_list("status", flat=True)
        status = next(iter(root), "gone")
        return f"It was cancelled because of the job {job.cancelled_because}, which is {status}: retry that one."
    kinds = (EventKind.CANCELLED, EventKind.EXPIRED)
    event = JobEvent.objects.using(settings.DATABASE).filter(job=job.pk, kind__in=kinds).order_by("-id").first()
    if event and event.kind == EventKind.EXPIRED:
        return f"It was not started by {job.expires_at:%Y-%m-%d %H:%M:%S %Z}, and so was cancelled."
    return f"It was cancelled by {event.actor}." if event and event.actor else "It was cancelled."


def _of_running(job: Job, now: datetime) -> Iterator[Reason]:
    worker = Worker.objects.using(settings.DATABASE).filter(pk=str(job.worker_id)).first()
    if worker is None or worker.lease_expires_at <= now:
        text = f"Its worker {job.worker_id} has not been heard of; the job is taken back at the next sweep."
        yield Reason(Why.LOST, text)
        return
    asked = ", and was asked to stop" if job.cancel_requested_at else ""
    yield Reason(Why.RUNNING, f"It runs on {worker.name}, attempt {job.attempt}{asked}.")


def _of_waiting(job: Job, now: datetime) -> Iterator[Reason]:
    held_back = [*_parents(job), *_time(job, now), *_pauses(job, now), *_workers(job, now), *_limits(job, now)]
    yield from held_back
    if held_back:
        return
    able = _able_workers(job, now)
    if ahead := _ahead(job, able, now):
        count = f"{ahead:,}" if ahead < _COUNTED else f"at least {_COUNTED:,}"
        are = "is 1 more urgent job" if ahead == 1 else f"are {count} more urgent jobs"
        yield Reason(Why.BEHIND, f"There {are} before it.")
        return
    running = Job.objects.using(settings.DATABASE).filter(status=Status.PROCESSING).count()
    slots = sum(worker.concurrency for worker in able)
    yield Reason(
        Why.READY, f"Nothing holds it back: it is next. Workers for it have {slots} slots; {running} jobs run."
    )


def _parents(job: Job) -> Iterator[Reason]:
    if not job.unmet:
        return
    edges = JobDependency.objects.using(settings.DATABASE).filter(child=job.pk, settled=False).order_by("parent")
    rows = list(edges.values_list("parent_id", "parent__type", "parent__status")[:_SHOWN])
    shown = ", ".join(f"{id_} ({type_}, {status})" for id_, type_, status in rows)
    more = f" and {job.unmet - len(rows):,} more" if job.unmet > len(rows) else ""
    yield Reason(Why.PARENTS, f"It waits for {shown}{more}.", [id_ for id_, _, _ in rows])


def _time(job: Job, now: datetime) -> Iterator[Reason]:
    if job.run_at <= now:
        return
    wait = _span((job.run_at - now).total_seconds())
    if job.attempts_used and job.last_error:
        text = f"Attempt {job.attempt} failed; the next one follows in {wait}: {job.last_error}"
        yield Reason(Why.RETRY, text, until=job.run_at)
    else:
        yield Reason(Why.NOT_DUE, f"It is due in {wait}.", until=job.run_at)


def _pauses(job: Job, now: datetime) -> Iterator[Reason]:
    if (queue := _queue(job)) and queue.paused and (queue.paused_until is None or queue.paused_until > now):
        yield Reason(Why.QUEUE_PAUSED, f"The queue {job.queue!r} is paused{_until(queue.paused_until)}.",
                     until=queue.paused_until)  # fmt: skip
    paused = PausedType.objects.using(settings.DATABASE).filter(Q(until=None) | Q(until__gt=now), type=job.type).first()
    if paused:
        yield Reason(Why.TYPE_PAUSED, f"The type {job.type!r} is paused{_until(paused.until)}.", until=paused.until)


def _workers(job: Job, now: datetime) -> Iterator[Reason]:
    alive = _alive(now)
    serving = [worker for worker in alive if worker.queues is None or job.queue in worker.queues]
    if not alive:
        yield Reason(Why.NO_WORKER, "No worker is alive: start one with manage.py runworker.")
    elif not serving:
        served = sorted({queue for worker in alive for queue in worker.queues or ()})
        text = f"No live worker serves the queue {job.queue!r}; they serve {', '.join(served)}."
        yield Reason(Why.NO_WORKER, text)
    elif not _able_workers(job, now):
        text = f"No live worker of the queue {job.queue!r} knows the type {job.type!r}: is its app installed there?"
        yield Reason(Why.NO_WORKER, text)


def _limits(job: Job, now: datetime) -> Iterator[Reason]:
    queue = _queue(job)
    if queue is None:
        return
    running = Job.objects.using(settings.DATABASE).filter(queue=job.queue, status=Status.PROCESSING)
    if queue.concurrency is not None:
        yield from _held(running, queue.concurrency, Why.LIMIT, f"The queue {job.queue!r}")
    if queue.concurrency_per_key is not None and job.concurrency_key is not None:
        of_key = running.filter(concurrency_key=job.concurrency_key)
        key = f"The concurrency key {job.concurrency_key!r}"
        yield from _held(of_key, queue.concurrency_per_key, Why.KEY_LIMIT, key)
    if queue.rate is not None and queue.tokens_at is not None:
        burst = queue.burst or max(1.0, queue.rate)
        tokens = min(burst, queue.tokens + queue.rate * (now - queue.tokens_at).total_seconds())
        if tokens < 1:
            wait = _span((1 - tokens) / queue.rate)
            text = f"The queue {job.queue!r} starts {queue.rate:g} jobs a second; the next one in {wait}."
            yield Reason(Why.RATE, text)


def _held(running: QuerySet[Job], limit: int, why: Why, what: str) -> Iterator[Reason]:
    count = running.aggregate(count=Count("id"))["count"]
    if count >= limit:
        ids = list(running.order_by("id").values_list("pk", flat=True)[:_SHOWN])
        by = f", held by {', '.join(map(str, ids))}" if ids else ""
        yield Reason(why, f"{what} may run {limit} jobs at once{by}.", ids)


def _ahead(job: Job, able: Sequence[Worker], now: datetime) -> int:
    """Count the due jobs that the workers of this one would start before it."""
    queues = {queue for worker in able for queue in worker.queues or ()} | {job.queue}
    if any(worker.queues is None for worker in able):
        waiting = Job.objects.using(settings.DATABASE).filter(status=Status.PENDING, unmet=0)
        queues |= set(waiting.order_by().values_list("queue", flat=True).distinct())
    is_paused = Q(paused=True) & (Q(paused_until=None) | Q(paused_until__gt=now))
    paused = set(Queue.objects.using(settings.DATABASE).filter(is_paused).values_list("name", flat=True))
    types = sorted({type_ for worker in able for type_ in worker.types})
    aging = settings.AGING
    ((count,),) = DjangoSession().fetch(
        "ahead",
        id=job.pk,
        queues=sorted(queues - paused | {job.queue}),
        types=types,
        step=aging.step,
        decrement=aging.decrement,
        thresholds=list(aging.thresholds),
        limit=_COUNTED,
    )
    return int(count)


def _queue(job: Job) -> Queue | None:
    return Queue.objects.using(settings.DATABASE).filter(name=job.queue).first()


def _alive(now: datetime) -> list[Worker]:
    return list(Worker.objects.using(settings.DATABASE).filter(lease_expires_at__gt=now, stopping=False))


def _able_workers(job: Job, now: datetime) -> list[Worker]:
    return [w for w in _alive(now) if (w.queues is None or job.queue in w.queues) and job.type in w.types]


def _until(moment: datetime | None) -> str:
    return f" until {moment:%Y-%m-%d %H:%M:%S %Z}" if moment else ", until somebody resumes it"


def _span(seconds: float) -> str:
    """Return a length of time in words, exact enough to wait for."""
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.1f} s"
