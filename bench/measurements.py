"""What is measured, and that it really happened."""

import statistics
import subprocess
import sys
import threading
import time
from typing import Any

from django.db import connections, transaction

from bench.tasks import noop, stamp
from jobs.models import Job
from workers.worker import Plan, Worker

_BULK = 5_000


def drain(jobs: int | None, processes: int) -> dict[str, Any]:
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


def latency(jobs: int | None, _: int) -> dict[str, Any]:
    """Commit jobs one at a time while a worker is idle; milliseconds from the commit to the handler's start."""
    worker = Worker(Plan())
    thread = threading.Thread(target=worker.run)
    thread.start()
    samples = []
    try:
        for _ in range(jobs or 200):
            with transaction.atomic():
                job = stamp.enqueue()
            committed = time.monotonic()
            while (result := Job.objects.values_list("result", flat=True).get(pk=job.pk)) is None:
                time.sleep(0.002)
            samples.append((result - committed) * 1000)
            time.sleep(0.02)
    finally:
        worker.stop()
        thread.join()
        connections.close_all()
    ordered = sorted(samples)
    return {
        "jobs": len(samples),
        "pick-up p50, ms": statistics.median(ordered),
        "pick-up p99, ms": ordered[int(len(ordered) * 0.99)],
        "pick-up max, ms": ordered[-1],
    }


def enqueue(jobs: int | None, _: int) -> dict[str, Any]:
    """Enqueue one by one, each its own transaction, and in bulk."""
    count = jobs or 2_000
    started = time.perf_counter()
    for _ in range(count):
        noop.enqueue()
    single = count / (time.perf_counter() - started)
    started = time.perf_counter()
    noop.enqueue_many([{}] * 10_000)
    bulk = 10_000 / (time.perf_counter() - started)
    if Job.objects.count() != count + 10_000:
        raise SystemExit("Not every job was stored.")
    return {"one by one per second": single, "bulk of 10,000 per second": bulk}
