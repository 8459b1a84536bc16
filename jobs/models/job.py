"""The row of a job, and the constraints by which PostgreSQL refuses an impossible one.

Nothing here changes a status: `jobs.lifecycle` does. Indexes exist where a hot path reads, and cover live rows only, so
that history costs the hot paths nothing.
"""

from datetime import datetime, timedelta

from django.db import models
from django.db.models import Case, F, Q, When
from django.db.models.functions import Now
from django.utils import timezone

from jobs.ids import uuid7
from jobs.states import FINAL, Phase, Status

_FINAL = sorted(FINAL)


class Job(models.Model):
    """One piece of work: a type, a payload, and where it stands."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    type = models.CharField(max_length=100)
    queue = models.CharField(max_length=100, default="default")
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.PENDING)
    priority = models.FloatField(default=2.0, help_text="1 (High) to 3 (Low); fractions are allowed.")
    payload = models.JSONField(default=dict)
    metadata = models.JSONField(null=True, help_text="What the caller attached to it; no argument of the handler.")

    scheduled_at = models.DateTimeField(db_default=Now(), help_text="When the caller asked for it; never changes.")
    run_at = models.DateTimeField(db_default=Now(), help_text="When it may next be claimed.")
    created_at = models.DateTimeField(db_default=Now())
    started_at = models.DateTimeField(null=True, help_text="When the latest attempt was claimed.")
    finished_at = models.DateTimeField(null=True)

    attempt = models.IntegerField(default=0, help_text="How often it was claimed; never goes down.")
    attempts_refunded = models.IntegerField(default=0, help_text="Claims that do not count against max_attempts.")
    max_attempts = models.IntegerField(default=3)
    worker_id = models.UUIDField(null=True)  # no foreign key: a worker's row may go while its claim stands
    unmet = models.IntegerField(default=0, help_text="Parents that are not settled yet.")

    workflow_id = models.UUIDField(null=True, help_text="The graph that it was made in.")
    step = models.CharField(max_length=100, db_default="", default="", help_text="Its name in that graph.")
    cancelled_because = models.UUIDField(null=True, help_text="The job whose end cancelled this one.")
    unique_key = models.CharField(max_length=200, null=True)
    unique_while_running = models.BooleanField(default=True, db_default=True)
    concurrency_key = models.CharField(max_length=200, null=True, help_text="Limited together in its queue.")
    expires_at = models.DateTimeField(null=True, help_text="Not started by then, it is cancelled.")
    timeout = models.FloatField(null=True, help_text="Seconds a run may take; otherwise what its type says.")
    series_id = models.BigIntegerField(null=True, help_text="The series that made it.")

    result = models.JSONField(null=True)
    progress = models.JSONField(null=True, help_text="How far the latest attempt is: done, total, message.")
    last_error = models.TextField(default="", blank=True)
    cancel_requested_at = models.DateTimeField(null=True)

    created = True  # by the call that returned it; False if it held the unique key already
    is_spooled = False  # accepted while the database was away, and on its way there: for the one who enqueued it

    class Meta:
        verbose_name = "job"
        permissions = [("retry_job", "Can retry jobs"), ("cancel_job", "Can cancel jobs")]
        constraints = [
            # Short, and one for all that follows from the status: the server plans each check anew for each insert.
            models.CheckConstraint(
                name="dilamme_job_fits_its_status",
                condition=Case(
                    When(finished_at__isnull=False, then=Q(worker_id__isnull=True, status__in=_FINAL)),
                    When(worker_id__isnull=True, then=Q(status=Status.PENDING)),
                    default=Q(status=Status.PROCESSING, unmet=0),
                    output_field=models.BooleanField(),
                ),
            ),
            models.CheckConstraint(name="dilamme_job_priority_range", condition=Q(priority__gte=1, priority__lte=3)),
            models.CheckConstraint(
                name="dilamme_job_attempts_range",
                condition=Q(attempts_refunded__gte=0, attempts_refunded__lte=F("attempt")),
            ),
            models.CheckConstraint(
                name="dilamme_job_max_attempts_range", condition=Q(max_attempts__gte=1, max_attempts__lte=1000)
            ),
            models.CheckConstraint(name="dilamme_job_unmet_not_negative", condition=Q(unmet__gte=0)),
            models.CheckConstraint(name="dilamme_job_has_names", condition=Q(type__gt="", queue__gt="")),
            # Held from the enqueue to the first claim, or, with unique_while_running, to the end.
            models.UniqueConstraint(
                "unique_key",
                name="dilamme_job_unique_key",
                condition=Q(unique_key__isnull=False)
                & (
                    Q(status=Status.PENDING, attempt=0)
                    | Q(status__in=[Status.PENDING, Status.PROCESSING], unique_while_running=True)
                ),
            ),
        ]
        indexes = [
            # The claim: one range per queue and priority, oldest first.
            models.Index(
                "queue", "priority", "run_at", "id",
                name="dilamme_job_ready", condition=Q(status=Status.PENDING, unmet=0),
            ),
            # Rescue, and what a worker still holds after an outage.
            models.Index("worker_id", name="dilamme_job_running", condition=Q(status=Status.PROCESSING)),
            # The dead letters, newest first; written on the last failure only.
            models.Index("id", name="dilamme_job_dead", condition=Q(status=Status.FAILED)),
            models.Index("workflow_id", "id", name="dilamme_job_workflow", condition=Q(workflow_id__isnull=False)),
            models.Index(
                "expires_at", name="dilamme_job_expiry", condition=Q(status=Status.PENDING, expires_at__isnull=False)
            ),
        ]  # fmt: skip

    def __str__(self) -> str:
        return f"{self.type} {self.id}"

    @property
    def attempts_used(self) -> int:
        """How many attempts count against `max_attempts`."""
        return self.attempt - self.attempts_refunded

    def phase(self, now: datetime | None = None) -> Phase:
        """Return where the job stands, more precisely than its status; `now` defaults to this host's clock."""
        if self.status == Status.PENDING:
            if self.unmet:
                return Phase.BLOCKED
            if self.run_at > (now or timezone.now()):
                return Phase.RETRYING if self.attempts_used and self.last_error else Phase.SCHEDULED
            return Phase.READY
        if self.status == Status.PROCESSING:
            return Phase.CANCELLING if self.cancel_requested_at else Phase.RUNNING
        return Phase(self.status)

    @property
    def duration(self) -> timedelta | None:
        """How long the latest attempt took, from claim to end; None while it has not ended."""
        return self.finished_at - self.started_at if self.finished_at and self.started_at else None


class DeadLetter(Job):
    """A job out of attempts. A view of `Job`, not a table."""

    class Meta:
        proxy = True
        verbose_name = "dead letter"
