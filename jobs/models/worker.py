"""The worker processes that are alive."""

import uuid

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now


class Worker(models.Model):
    """A worker process that is alive, or was until its lease ran out. The id belongs to one process start."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    name = models.CharField(max_length=200, help_text="Host and process id.")
    queues = models.JSONField(null=True, help_text="The queues it serves; empty for all.")
    types = models.JSONField(default=list, help_text="The job types it knows.")
    concurrency = models.IntegerField()
    listening = models.BooleanField(default=False, help_text="Whether notifications reach it; otherwise it polls.")
    saturated = ArrayField(
        models.TextField(), default=list, db_default=[],
        help_text="Queue and priority of jobs that wait here for their turn: word of another would change nothing.",
    )  # fmt: skip
    stopping = models.BooleanField(default=False)
    started_at = models.DateTimeField(db_default=Now())
    lease_expires_at = models.DateTimeField()

    class Meta:
        verbose_name = "worker"

    def __str__(self) -> str:
        return self.name
