"""How near to the ideal handlers run that take their time: sync ones in threads, async ones on one loop."""

from typing import Any

from bench import workers
from bench.tasks import doze, nap
from jobs.models import Job

_NAP, _THREADS = 0.01, 50  # seconds, and sync handlers at once
_DOZE, _TASKS = 0.1, 500  # seconds, and async handlers at once


def measure(jobs: int | None, _: int) -> dict[str, Any]:
    """Drain each kind with one process; the ideal is all slots busy all the time."""
    sync = _rate(nap, jobs or 20_000, _THREADS)
    asynchronous = _rate(doze, jobs or 20_000, _TASKS)
    return {
        "sync of 10 ms in 50 threads, per second": sync,
        "of the ideal, sync": sync * _NAP / _THREADS,
        "async of 100 ms, 500 at once, per second": asynchronous,
        "of the ideal, async": asynchronous * _DOZE / _TASKS,
    }


def _rate(task: Any, count: int, slots: int) -> float:
    for start in range(0, count, 5_000):
        task.enqueue_many([{}] * min(5_000, count - start))
    workers.work(1, "--concurrency", str(slots))
    done = Job.objects.filter(type=task.name, status="completed", attempt=1)
    if done.count() != count:
        raise SystemExit(f"Only {done.count():,} of {count:,} jobs completed at their first attempt.")
    first = done.order_by("started_at").values_list("started_at", flat=True)[0]
    last = done.order_by("-finished_at").values_list("finished_at", flat=True)[0]
    return float(count / (last - first).total_seconds())
