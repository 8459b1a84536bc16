"""How close to its time a scheduled job starts, and that none starts early."""

import random
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connections

from bench import workers
from bench.tasks import clock
from jobs.models import Job
from workers.worker import Plan, Worker


def measure(jobs: int | None, _: int) -> dict[str, Any]:
    """Schedule jobs at random moments two to six seconds ahead; from then to the handler's start, on one clock."""
    count = jobs or 200
    worker = Worker(Plan())
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        start = datetime.now(UTC) + timedelta(seconds=2)
        for _ in range(count):
            clock.using(run_at=start + timedelta(seconds=4 * random.random())).enqueue()
        workers.wait_for(count)
    finally:
        worker.stop()
        thread.join()
        connections.close_all()
    late = [job.result - job.scheduled_at.timestamp() for job in Job.objects.all()]
    if min(late) < 0:
        raise SystemExit(f"A job started {-min(late):.6f} s early.")
    return {"jobs": count, **workers.percentiles("late", late)}
