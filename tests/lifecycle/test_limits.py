"""Queues and types that are held back: paused, limited at once, per key and per second."""

import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from jobs import Options, enqueue, enqueue_many
from jobs.drafts import NewJob
from jobs.errors import InvalidJob
from jobs.models import Job, Queue
from jobs.queries import WorkerSession
from jobs.queues import limit_queue, pause_queue, pause_type, resume_queue, resume_type
from tests.lifecycle.graphs import Turns
from tests.support import WorkerThread, handler, wait_until


@pytest.fixture
def others(turns: Turns) -> Iterator[Turns]:
    """Another worker."""
    session = WorkerSession()
    yield Turns(session)
    session.close()


def make(count: int, **options: Any) -> list[Job]:
    """Make jobs of the queue `q`."""
    return list(enqueue_many([NewJob("free", {}, Options(queue="q", **options)) for _ in range(count)]))


def claim(turns: Turns, room: int = 100) -> int:
    """Claim with fresh knowledge of what is held back; return how many were taken."""
    turns.appetite.controls.doubt()
    return len(turns.claim(room))


def test_a_paused_queue_starts_nothing_and_goes_on_where_it_was(turns: Turns) -> None:
    """Other queues are not touched, and what runs may end."""
    make(3)
    elsewhere = enqueue("free", queue="other")
    pause_queue("q")
    assert [each.id for each in turns.claim()] == [elsewhere.pk]
    resume_queue("q")
    assert claim(turns) == 3


def test_a_pause_may_end_by_itself(turns: Turns) -> None:
    """The database's clock says when."""
    make(1)
    pause_queue("q", until=timezone.now() + timedelta(hours=1))
    assert claim(turns) == 0
    assert turns.appetite.controls.reopens_at is not None
    Queue.objects.update(paused_until=timezone.now())
    assert claim(turns) == 1


def test_a_paused_type_starts_nowhere(turns: Turns) -> None:
    """Jobs of other types in the same queue pass it."""
    make(2)
    with handler(lambda: None, name="passing"):
        passing = enqueue("passing", queue="q")
        pause_type("free")
        assert [each.id for each in turns.claim()] == [passing.pk]
        resume_type("free")
        assert claim(turns) == 2


def test_a_queue_runs_no_more_at_once_than_its_limit(turns: Turns, others: Turns) -> None:
    """Over all workers; what ends makes room; a change is in force at the next claim."""
    jobs = make(10)
    limit_queue("q", concurrency=3)
    assert [claim(turns, 2), claim(others), claim(turns)] == [2, 1, 0]
    turns.end(next(iter(turns.held)))
    assert claim(others) == 1
    limit_queue("q", concurrency=5)
    assert claim(others) == 2
    limit_queue("q", concurrency=0)
    assert claim(others) == 0
    limit_queue("q")
    assert claim(others) == len(jobs) - 6


def test_nothing_stays_taken_by_a_worker_that_died(turns: Turns, others: Turns) -> None:
    """What is rescued counts no more."""
    from jobs import lifecycle

    make(4, max_attempts=1)
    limit_queue("q", concurrency=2)
    assert claim(turns) == 2
    assert claim(others) == 0
    Job.objects.filter(status="processing").update(started_at="2020-01-01T00:00Z")
    lifecycle.rescue(others.session)
    assert claim(others) == 2


def test_each_key_has_a_limit_of_its_own(turns: Turns) -> None:
    """A key at its limit does not hold up the jobs behind it."""
    make(5, concurrency_key="a")
    make(5, concurrency_key="b")
    make(2)
    limit_queue("q", concurrency_per_key=2)
    assert claim(turns) == 6
    running = Job.objects.filter(status="processing")
    assert [running.filter(concurrency_key=key).count() for key in ("a", "b")] == [2, 2]
    assert running.filter(concurrency_key=None).count() == 2
    assert claim(turns) == 0


def test_a_rate_lets_a_burst_through_and_then_says_when_the_next_may_start(turns: Turns) -> None:
    """The bucket is in the database, so that all workers share it."""
    make(20)
    limit_queue("q", rate=0.001, burst=5)
    assert claim(turns) == 5
    assert claim(turns) == 0
    Queue.objects.update(tokens=2.5, tokens_at=timezone.now())
    assert claim(turns) == 2
    Queue.objects.update(tokens_at=timezone.now() - timedelta(seconds=600))
    assert claim(turns) == 1


def test_the_most_urgent_of_a_limited_queue_go_first(turns: Turns) -> None:
    """Limits change nothing about the order."""
    low, high = make(1, priority=3)[0], make(1, priority=1)[0]
    limit_queue("q", concurrency=1)
    assert [each.id for each in turns.claim()] == [high.pk]
    turns.end(high)
    assert [each.id for each in turns.claim()] == [low.pk]


@pytest.mark.parametrize(
    ("limits", "text"),
    [
        ({"concurrency": -1}, "concurrency is -1; use a whole number from 0"),
        ({"concurrency_per_key": 0}, "concurrency_per_key is 0; use a whole number from 1"),
        ({"rate": 0}, "rate is 0; use starts per second above 0"),
        ({"rate": float("nan")}, "rate is nan"),
        ({"burst": 3}, "burst is given without a rate"),
        ({"concurrency": True}, "concurrency is True"),
    ],
)
def test_limits_out_of_range_are_refused(turns: Turns, limits: dict[str, Any], text: str) -> None:
    """The text names the limit and the way out."""
    assert turns.held == {}
    with pytest.raises(InvalidJob, match=text):
        limit_queue("q", **limits)


def test_a_pause_in_the_past_or_a_name_that_is_none_is_refused(turns: Turns) -> None:
    """They would do nothing."""
    assert turns.held == {}
    with pytest.raises(InvalidJob, match="use an aware time in the future"):
        pause_queue("q", until=timezone.now() - timedelta(seconds=1))
    with pytest.raises(InvalidJob, match="queue is ''"):
        pause_queue("")
    with pytest.raises(InvalidJob, match="type is 'a b'"):
        pause_type("a b")


def test_a_worker_keeps_to_the_limit_and_drains_the_queue(
    turns: Turns, start_worker: Callable[..., WorkerThread]
) -> None:
    """With two real workers: never more at once than allowed, and nothing is left over."""
    assert turns.held == {}
    active: list[uuid.UUID] = []
    most: list[int] = []

    def count(ctx: Any) -> None:
        active.append(ctx.job_id)
        most.append(len(active))
        active.remove(ctx.job_id)

    with handler(count, name="counted"):
        limit_queue("q", concurrency=2)
        enqueue_many([NewJob("counted", {}, Options(queue="q")) for _ in range(200)])
        for _ in range(2):
            start_worker(concurrency=8)
        wait_until(lambda: Job.objects.filter(status="completed").count() == 200)
    assert max(most) <= 2


def test_a_pause_is_heard_while_workers_run(turns: Turns, start_worker: Callable[..., WorkerThread]) -> None:
    """What comes after it waits; resumed, it runs at once."""
    assert turns.held == {}
    start_worker()
    first = enqueue("free", queue="q")
    wait_until(lambda: Job.objects.filter(pk=first.pk, status="completed").exists())
    pause_queue("q")
    start = timezone.now()
    second = enqueue("free", queue="q")
    other = enqueue("free", queue="other")
    wait_until(lambda: Job.objects.filter(pk=other.pk, status="completed").exists())
    assert Job.objects.get(pk=second.pk).status == "pending"
    resume_queue("q")
    wait_until(lambda: Job.objects.filter(pk=second.pk, status="completed").exists())
    assert timezone.now() - start < timedelta(seconds=4)
