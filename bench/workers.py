"""What measurements with worker processes share: jobs that are made, drained, and seen to have run exactly once."""

import statistics
import subprocess
import sys
import time
from typing import Any

from django.db import connection

from bench.tasks import noop
from jobs.models import Job
from jobs.states import Status

_BULK = 5_000


def fill(count: int) -> None:
    """Enqueue no-op jobs."""
    for start in range(0, count, _BULK):
        noop.enqueue_many([{}] * min(_BULK, count - start))


def drain(count: int, processes: int = 1) -> float:
    """Enqueue no-op jobs and have them drained; returns jobs per second, from the first claim to the last end.

    Each must have completed at its first attempt.
    """
    before = _finished()
    fill(count)
    work(processes)
    done = Job.objects.filter(status=Status.COMPLETED, attempt=1, finished_at__gt=before)
    if done.count() != count:
        raise SystemExit(f"Only {done.count():,} of {count:,} jobs completed at their first attempt.")
    first = done.order_by("started_at").values_list("started_at", flat=True)[0]
    return float(count / (_finished() - first).total_seconds())


def work(processes: int, *arguments: str) -> None:
    """Run worker processes with default settings until nothing is due."""
    command = [sys.executable, "manage.py", "runworker", "--drain", *arguments]
    workers = [subprocess.Popen(command, stderr=subprocess.DEVNULL) for _ in range(processes)]
    for worker in workers:
        worker.wait()


def percentiles(name: str, seconds: list[float]) -> dict[str, Any]:
    """Return median, 99th percentile and the largest, in milliseconds."""
    ordered = sorted(second * 1000 for second in seconds)
    return {
        f"{name} p50, ms": statistics.median(ordered),
        f"{name} p99, ms": ordered[int(len(ordered) * 0.99)],
        f"{name} max, ms": ordered[-1],
    }


def wait_for(count: int) -> None:
    """Wait until so many jobs have completed."""
    while Job.objects.filter(status=Status.COMPLETED).count() < count:
        time.sleep(0.01)


def execute(statement: str, *parameters: object, **named: object) -> Any:
    """Run a statement and return its first value, if it has one."""
    with connection.cursor() as cursor:
        cursor.execute(statement, named or parameters)
        return cursor.fetchone()[0] if cursor.description else None


def _finished() -> Any:
    return execute("select coalesce(max(finished_at), to_timestamp(0)) from dilamme_job")
