"""Recurring rules, and the slots for which they have made a job."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from jobs.states import CatchUpPolicy, Overlap, SeriesMode


class Series(models.Model):
    """A rule by which jobs are made again and again. Its name is what it is known by; saved by `jobs.recurring`."""

    name = models.CharField(max_length=100)
    type = models.CharField(max_length=100)
    payload = models.JSONField(default=dict, blank=True)
    queue = models.CharField(max_length=100, null=True, blank=True, help_text="Falls back to that of the type.")
    priority = models.FloatField(null=True, blank=True, help_text="1 (High) to 3 (Low). Falls back to the type's.")
    max_attempts = models.IntegerField(null=True, blank=True, help_text="Falls back to that of the type.")

    interval = models.CharField(max_length=12, default="", blank=True, help_text="Such as 30s 5m 2h 1d 1w 1mo 1y.")
    cron = models.CharField(
        max_length=500, default="", blank=True, help_text="Such as 0 9 * * 1-5. Instead of an interval."
    )
    zone = models.CharField(max_length=64, default="UTC", help_text="IANA name, such as Europe/Paris.")
    mode = models.CharField(max_length=5, choices=SeriesMode.choices, default=SeriesMode.GRID)
    catch_up = models.CharField(max_length=4, choices=CatchUpPolicy.choices, default=CatchUpPolicy.ONE)
    catch_up_limit = models.IntegerField(default=100, help_text="Missed slots that are made up for at most.")
    overlap = models.CharField(max_length=5, choices=Overlap.choices, default=Overlap.SKIP)
    jitter = models.FloatField(default=0.0, help_text="Seconds by which a start may be put off at random.")
    starts_at = models.DateTimeField(db_default=Now(), help_text="The anchor: slots are counted from here.")
    ends_at = models.DateTimeField(null=True, blank=True)

    paused = models.BooleanField(default=False)
    declared = models.BooleanField(default=False, editable=False, help_text="By the code: edited there.")
    fault = models.TextField(default="", editable=False, help_text="Why it does not fire.")
    last_slot = models.DateTimeField(editable=False, help_text="The latest slot that was dealt with.")
    next_at = models.DateTimeField(null=True, editable=False, help_text="The next slot; none while it waits for a run.")
    last_job_id = models.UUIDField(null=True, editable=False)
    skipped = models.BigIntegerField(default=0, editable=False, help_text="Slots without a job: a run was going on.")

    class Meta:
        verbose_name = "series"
        verbose_name_plural = "series"
        permissions = [("run_series", "Can run series now")]
        constraints = [
            models.UniqueConstraint(fields=["name"], name="dilamme_series_name"),
            models.CheckConstraint(
                name="dilamme_series_has_one_rule",
                condition=(~Q(interval="") & Q(cron="")) | (Q(interval="") & ~Q(cron="") & Q(mode=SeriesMode.GRID)),
            ),
            models.CheckConstraint(
                name="dilamme_series_words_known",
                condition=Q(mode__in=SeriesMode.values, catch_up__in=CatchUpPolicy.values, overlap__in=Overlap.values),
            ),
            models.CheckConstraint(
                name="dilamme_series_ranges",
                condition=Q(catch_up_limit__gte=1, catch_up_limit__lte=10_000, jitter__gte=0),
            ),
        ]
        indexes = [models.Index("next_at", name="dilamme_series_due", condition=Q(paused=False, fault=""))]

    def __str__(self) -> str:
        return self.name

    @property
    def rule_text(self) -> str:
        """The rule as it was given."""
        return self.cron or self.interval


class Occurrence(models.Model):
    """One slot of a series, and the job that was made for it. No slot has two."""

    series = models.ForeignKey(Series, models.CASCADE, related_name="occurrences", db_index=False)
    slot = models.DateTimeField()
    job_id = models.UUIDField()

    class Meta:
        verbose_name = "occurrence"
        constraints = [models.UniqueConstraint(fields=["series", "slot"], name="dilamme_occurrence_once")]

    def __str__(self) -> str:
        return f"{self.series_id} {self.slot}"
