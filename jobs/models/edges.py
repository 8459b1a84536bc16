"""What stands between jobs: who waits for whom, and who has not been told yet."""

from django.db import models
from django.db.models import F, Q

from jobs.models.job import Job
from jobs.states import OnFailure


class JobDependency(models.Model):
    """An edge: `child` waits until `parent` is settled."""

    child = models.ForeignKey(Job, models.CASCADE, related_name="parent_edges", db_index=False)
    parent = models.ForeignKey(Job, models.CASCADE, related_name="child_edges")
    on_failure = models.CharField(max_length=6, choices=OnFailure.choices, default=OnFailure.CANCEL)
    settled = models.BooleanField(default=False, help_text="Whether the child has been told; it is told once.")

    class Meta:
        verbose_name = "dependency"
        verbose_name_plural = "dependencies"
        constraints = [
            models.UniqueConstraint(fields=["child", "parent"], name="dilamme_dependency_once"),
            models.CheckConstraint(name="dilamme_dependency_not_itself", condition=~Q(child=F("parent"))),
            models.CheckConstraint(
                name="dilamme_dependency_on_failure_known", condition=Q(on_failure__in=OnFailure.values)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.child_id} after {self.parent_id}"


class Unsettled(models.Model):
    """A job that was cancelled because of another one, and whose own dependants have not all been told.

    Written in the transaction that cancels it, and gone as soon as they have; nearly always empty.
    """

    job = models.OneToOneField(Job, models.CASCADE, primary_key=True, related_name="+", db_constraint=False)

    class Meta:
        verbose_name = "unsettled job"

    def __str__(self) -> str:
        return str(self.job_id)
