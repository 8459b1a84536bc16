"""The rows: jobs, their edges, their history, and the workers that are alive.

PostgreSQL refuses impossible rows. Nothing here changes a status: `jobs.lifecycle` does.
"""

from jobs.models.edges import JobDependency, Unsettled
from jobs.models.history import JobEvent
from jobs.models.idempotency import IdempotencyKey
from jobs.models.job import DeadLetter, Job
from jobs.models.queue import PausedType, Queue
from jobs.models.series import Occurrence, Series
from jobs.models.worker import Worker

__all__ = [
    "DeadLetter",
    "IdempotencyKey",
    "Job",
    "JobDependency",
    "JobEvent",
    "Occurrence",
    "PausedType",
    "Queue",
    "Series",
    "Unsettled",
    "Worker",
]
