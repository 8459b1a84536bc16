"""The list of dead letters: jobs out of attempts, with their errors, and a way to send them again.

A dead letter is a job; its own page is that of the job.
"""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect

from jobs.admin.filters import PriorityFilter, QueueFilter, TypeFilter
from jobs.admin.jobs import JobColumns
from jobs.models import DeadLetter, Job
from jobs.states import Status


@admin.register(DeadLetter)
class DeadLetterAdmin(JobColumns):
    """Jobs that have failed for good, newest first."""

    list_display = ("badge", "kind", "error", "queue_name", "attempts", "created", "finished")
    list_filter = (TypeFilter, QueueFilter, PriorityFilter)
    actions = ("retry_selected", "retry_alone_selected")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Job]:
        """Return the failed jobs."""
        return super().get_queryset(request).filter(status=Status.FAILED)

    def change_view(self, request: HttpRequest, object_id: str, *_args: Any, **_kwargs: Any) -> HttpResponse:  # noqa: ARG002
        """Go to the page of the job, which is there whatever has become of it since."""
        return HttpResponseRedirect(self.url_of(object_id))
