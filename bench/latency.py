"""How soon an idle worker starts a job after its commit."""

import threading
import time
from typing import Any

from django.db import connections, transaction

from bench import workers
from bench.tasks import stamp
from jobs.models import Job
from workers.worker import Plan, Worker


def measure(jobs: int | None, _: int) -> dict[str, Any]:
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
            samples.append(result - committed)
            time.sleep(0.02)
    finally:
        worker.stop()
        thread.join()
        connections.close_all()
    return {"jobs": len(samples), **workers.percentiles("pick-up", samples)}
