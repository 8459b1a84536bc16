"""Series with real workers that are really killed."""

import os
import random
import time
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise

import pytest

from jobs import insights
from jobs.models import Job, Occurrence, Series
from jobs.series import make_series, pause_series, resume_series
from tests.support import WorkerProcess, wait_until

pytestmark = pytest.mark.django_db(transaction=True)

SLOTS = 60 if os.environ.get("DILAMME_SOAK") else 12


def test_a_grid_of_seconds_survives_workers_that_are_killed(
    start_worker_process: Callable[..., WorkerProcess],
) -> None:
    """Three workers, of which one at a time is killed and started again: each slot has one job, and none is missing."""
    from tests.app.tasks import do_nothing

    workers = [start_worker_process("--concurrency", "2") for _ in range(3)]
    series = make_series("grid", do_nothing.name, interval="1s", overlap="allow", catch_up="all")
    killed = 0
    deadline = time.monotonic() + SLOTS
    while time.monotonic() < deadline:
        pause = time.monotonic() + random.uniform(0.2, 1.5)
        wait_until(lambda until=pause: time.monotonic() > until)
        victim = random.randrange(3)
        workers[victim].process.kill()
        workers[victim].process.wait(10)
        workers[victim] = start_worker_process("--concurrency", "2")
        killed += 1
    wait_until(lambda: Occurrence.objects.count() >= SLOTS, within=30)
    pause_series(Series.objects.get(pk=series.pk))
    slots = list(Occurrence.objects.order_by("slot").values_list("slot", flat=True))
    assert {b - a for a, b in pairwise(slots)} == {timedelta(seconds=1)}
    assert Counter(Job.objects.values_list("scheduled_at", flat=True)) == Counter(slots)
    assert killed >= SLOTS // 3


def test_a_slot_starts_at_its_time_and_a_change_is_heard_at_once(
    start_worker_process: Callable[..., WorkerProcess],
) -> None:
    """A worker that was started long before a series is made runs its first slot within its second."""
    from tests.app.tasks import do_nothing

    start_worker_process()
    wait_until(lambda: insights.health().workers > 0)
    series = make_series("soon", do_nothing.name, interval="1s")
    first = wait_until(lambda: Job.objects.filter(status="completed").first())
    assert first.started_at - first.scheduled_at < timedelta(seconds=0.5)
    pause_series(Series.objects.get(pk=series.pk))
    before = Job.objects.count()
    resume_series(Series.objects.get(pk=series.pk))
    wait_until(lambda: Job.objects.count() > before)
