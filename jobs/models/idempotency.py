"""What was answered to requests that carried an idempotency key, so that they can be repeated without effect."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now


class IdempotencyKey(models.Model):
    """A key that a client sent with a request, and what the request was answered.

    The key is taken in the transaction of what the request makes, and the answer is added before its end: others see
    the row whole or not at all.
    """

    client = models.TextField(help_text="The name of the API key.")
    key = models.CharField(max_length=200)
    digest = models.CharField(max_length=64, help_text="SHA-256 of the request, in hexadecimal.")
    status = models.SmallIntegerField(null=True)
    answer = models.TextField(null=True, help_text="The JSON as it was sent.")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        verbose_name = "idempotency key"
        constraints = [
            models.UniqueConstraint(fields=["client", "key"], name="dilamme_idempotency_once"),
            models.CheckConstraint(
                name="dilamme_idempotency_answer_whole",
                condition=Q(status__isnull=True, answer__isnull=True)
                | Q(status__isnull=False, answer__isnull=False, status__gte=200, status__lte=299),
            ),
        ]
        indexes = [models.Index("created_at", name="dilamme_idempotency_age")]

    def __str__(self) -> str:
        return f"{self.client}: {self.key}"
