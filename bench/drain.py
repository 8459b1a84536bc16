"""How fast workers empty a queue of jobs that do nothing."""

import subprocess
import sys
from typing import Any

from bench.tasks import noop
from jobs.models import Job

_BULK = 5_000


def measure(jobs: int | None, processes: int) -> dict[str, Any]:
    """Enqueue no-op jobs, then start workers that drain them; seconds count from the first claim to the last end."""
    count = jobs or 10_000
    for start in range(0, count, _BULK):
        noop.enqueue_many([{}] * min(_BULK, count - start))
    command = [sys.executable, "manage.py", "runworker", "--drain"]
    workers = [subprocess.Popen(command, stderr=subprocess.DEVNULL) for _ in range(processes)]
    for worker in workers:
        worker.wait()
    done = Job.objects.filter(status="completed", attempt=1)
    if done.count() != count:
        raise SystemExit(f"Only {done.count()} of {count} jobs completed at their first attempt.")
    first = Job.objects.order_by("started_at").values_list("started_at", flat=True)[0]
    last = Job.objects.order_by("-finished_at").values_list("finished_at", flat=True)[0]
    return {"jobs": count, "processes": processes, "jobs per second": count / (last - first).total_seconds()}
