"""What operators say about queues and types: paused, limited. A queue without a row is neither."""

from django.db import models
from django.db.models import Q
from django.utils import timezone


class Queue(models.Model):
    """The limits of a queue. What counts against them are live claims, so nothing stays taken after a crash."""

    name = models.CharField(max_length=100, primary_key=True)
    paused = models.BooleanField(default=False)
    paused_until = models.DateTimeField(null=True, blank=True, help_text="Goes on by itself then.")
    concurrency = models.IntegerField(null=True, blank=True, help_text="Jobs that run at once, over all workers.")
    concurrency_per_key = models.IntegerField(null=True, blank=True, help_text="The same for each concurrency key.")
    rate = models.FloatField(null=True, blank=True, help_text="Starts per second, in the long run.")
    burst = models.IntegerField(null=True, blank=True, help_text="Starts at once after a rest; otherwise one second's.")
    tokens = models.FloatField(default=0.0, editable=False, help_text="Starts that were left at tokens_at.")
    tokens_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        verbose_name = "queue"
        permissions = [("pause_queue", "Can pause queues and types")]
        constraints = [
            models.CheckConstraint(
                name="dilamme_queue_limits",
                condition=(Q(concurrency__isnull=True) | Q(concurrency__gte=0))
                & (Q(concurrency_per_key__isnull=True) | Q(concurrency_per_key__gte=1))
                & (Q(rate__isnull=True) | Q(rate__gt=0))
                & (Q(burst__isnull=True) | Q(burst__gte=1)),
            )
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_paused(self) -> bool:
        """Whether it is paused now, by this host's clock."""
        return self.paused and (self.paused_until is None or self.paused_until > timezone.now())


class PausedType(models.Model):
    """A type of which no job is started."""

    type = models.CharField(max_length=100, primary_key=True)
    until = models.DateTimeField(null=True, blank=True, help_text="Goes on by itself then.")

    class Meta:
        verbose_name = "paused type"

    def __str__(self) -> str:
        return self.type
