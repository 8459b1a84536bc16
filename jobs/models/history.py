"""What happened to jobs: one row for each ended attempt, and for each thing somebody did."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from jobs.models.job import Job
from jobs.states import EventKind


class JobEvent(models.Model):
    """One row of history: what happened to a job, when, and by whom. One per ended attempt, not per breath."""

    # No constraint in the database: checking it would lock the job's row once more for each event.
    job = models.ForeignKey(Job, models.CASCADE, related_name="events", db_constraint=False, db_index=False)
    kind = models.CharField(max_length=16, choices=EventKind.choices)
    at = models.DateTimeField(db_default=Now())
    attempt = models.IntegerField()
    worker_id = models.UUIDField(null=True)
    started_at = models.DateTimeField(null=True, help_text="When this attempt was claimed.")
    duration = models.FloatField(null=True, help_text="Seconds the handler ran.")
    actor = models.CharField(max_length=150, default="", help_text="Who did it, when it was not the worker.")
    error = models.TextField(default="")
    traceback = models.TextField(default="")

    class Meta:
        verbose_name = "event"
        indexes = [models.Index("job", "id", name="dilamme_event_of_job")]
        constraints = [models.CheckConstraint(name="dilamme_event_kind_known", condition=Q(kind__in=EventKind.values))]

    def __str__(self) -> str:
        return f"{self.kind} (attempt {self.attempt})"
