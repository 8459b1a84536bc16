"""The list of jobs and the page of one job: columns, filters, search, and the buttons of `operating`.

It never loads a payload into a list, and never a whole one at all.
"""

import uuid
from collections.abc import Callable
from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import flatten_fieldsets
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, reverse

from jobs import insights
from jobs.admin import benchmark, detail, editing, presentation
from jobs.admin.filters import PriorityFilter, QueueFilter, StatusFilter, TypeFilter, WorkflowFilter
from jobs.admin.operating import OperatingAdmin
from jobs.explaining import explain
from jobs.models import Job
from jobs.states import FINAL, Status

_WHY = "Why is it not running?"


def _column(label: str, show: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    """Return an admin column that shows a job by `show`."""

    @admin.display(description=label)
    def column(_: Any, job: Any) -> Any:
        return show(job)

    return column


class JobColumns(OperatingAdmin):
    """The columns and the search that all lists of jobs share."""

    search_fields = ("id", "type")
    search_help_text = "A whole id, or how a type begins."
    list_display_links = ("kind",)
    ordering = ("-pk",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Job]:  # noqa: ARG002  Django's signature
        """Return all jobs, without what is large."""
        return insights.light_jobs()

    def get_search_results(
        self,
        request: HttpRequest,  # noqa: ARG002  Django's signature
        queryset: QuerySet[Job],
        search_term: str,
    ) -> tuple[QuerySet[Job], bool]:
        """Find one job by its id, or all whose type begins with what was typed."""
        term = search_term.strip()
        if not term:
            return queryset, False
        try:
            return queryset.filter(pk=uuid.UUID(term)), False
        except ValueError:
            return queryset.filter(type__startswith=term), False

    badge = _column("status", lambda job: presentation.badge(job.pk, job.status))
    kind = _column("type", lambda job: job.type)
    queue_name = _column("queue", lambda job: job.queue)
    priority_name = _column("priority", lambda job: presentation.priority_name(job.priority))
    attempts = _column("attempts", lambda job: f"{job.attempts_used} of {job.max_attempts}")
    created = _column("created", lambda job: presentation.moment(job.created_at))
    due = _column("due", lambda job: presentation.moment(job.run_at))
    started = _column("started", lambda job: presentation.moment(job.started_at))
    finished = _column("finished", lambda job: presentation.moment(job.finished_at))
    took = _column(
        "took",
        lambda job: presentation.with_title(
            presentation.seconds(job.duration), f"until {presentation.full_moment(job.finished_at)}"
        ),
    )
    error = _column("last error", lambda job: presentation.error_line(job.last_error))


@admin.register(Job)
class JobAdmin(JobColumns):
    """All jobs, newest first."""

    list_display = (
        "badge", "kind", "queue_name", "priority_name", "attempts", "created", "due", "started", "took", "error",
    )  # fmt: skip
    list_filter = (StatusFilter, TypeFilter, QueueFilter, PriorityFilter, WorkflowFilter)
    actions = ("retry_selected", "retry_alone_selected", "cancel_selected")
    fieldsets = (
        (
            "What it is",
            {
                "fields": (
                    "id",
                    ("kind", "queue_name", "priority_name"),
                    ("workflow", "step_name", "series"),
                    ("unique_name", "key_name"),
                )
            },
        ),
        (
            "Where it stands",
            {
                "fields": (
                    ("badge", "phase", "attempts"),
                    ("waits_for", "cancel_asked", "worker_id"),
                    ("cancelled_with", "how_far"),
                )
            },
        ),
        (
            "Times",
            {
                "fields": (
                    ("whole_created", "whole_scheduled", "whole_due"),
                    ("whole_started", "whole_finished", "took"),
                    ("whole_expiry", "longest"),
                )
            },
        ),
        ("Payload and result", {"fields": ("payload_text", "metadata_text", "result_text")}),
        ("Last error", {"fields": ("whole_error",)}),
    )

    phase = _column("phase", lambda job: str(job.phase().label))
    how_far = _column("progress", lambda job: presentation.progress(job.progress))
    waits_for = _column("parents left", lambda job: job.unmet)
    cancel_asked = _column("cancel asked", lambda job: presentation.full_moment(job.cancel_requested_at))
    whole_created = _column("created", lambda job: presentation.full_moment(job.created_at))
    whole_scheduled = _column("scheduled", lambda job: presentation.full_moment(job.scheduled_at))
    whole_due = _column("due", lambda job: presentation.full_moment(job.run_at))
    whole_started = _column("started", lambda job: presentation.full_moment(job.started_at))
    whole_finished = _column("finished", lambda job: presentation.full_moment(job.finished_at))
    whole_expiry = _column("expires", lambda job: presentation.full_moment(job.expires_at))
    longest = _column("timeout", lambda job: presentation.seconds(job.timeout))
    step_name = _column("step", lambda job: job.step or presentation.NOTHING)
    unique_name = _column("unique key", lambda job: job.unique_key or presentation.NOTHING)
    key_name = _column("concurrency key", lambda job: job.concurrency_key or presentation.NOTHING)
    payload_text = _column("payload", lambda job: presentation.block(job.payload_text))
    metadata_text = _column("metadata", lambda job: presentation.block(job.metadata_text))
    result_text = _column("result", lambda job: presentation.block(job.result_text))
    whole_error = _column("error", lambda job: presentation.block(job.last_error))

    @admin.display(description="workflow")
    def workflow(self, job: Job) -> str:
        """Return its workflow, with a way to all jobs of it."""
        if job.workflow_id is None:
            return presentation.NOTHING
        return presentation.link(self.list_of(job.workflow_id), job.workflow_id)

    @admin.display(description="series")
    def series(self, job: Job) -> str:
        """Return the series that made it, with a way to it."""
        name = insights.series_name_of(job)
        if name is None:
            return presentation.NOTHING
        address = reverse("admin:dilamme_series_change", args=[job.series_id], current_app=self.admin_site.name)
        return presentation.link(address, name)

    @admin.display(description="cancelled with")
    def cancelled_with(self, job: Job) -> str:
        """Return the job whose end cancelled this one, with a way to it."""
        if job.cancelled_because is None:
            return presentation.NOTHING
        return presentation.link(self.url_of(job.cancelled_because), job.cancelled_because)

    def get_readonly_fields(self, request: HttpRequest, obj: Job | None = None) -> list[str]:  # noqa: ARG002  Django's
        """Return every field."""
        return list(flatten_fieldsets(self.fieldsets))

    def get_urls(self) -> list[URLPattern]:
        """Add buttons, form and benchmark; they go first, because Django's last route takes everything."""
        return [*self.operating_urls(), *editing.urls(self), *benchmark.urls(self), *super().get_urls()]

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Job | None:  # noqa: ARG002
        """Return the job with payload, metadata and result as text, or None."""
        try:
            job_id = uuid.UUID(object_id)
        except ValueError:
            return None
        return detail.with_texts(self.get_queryset(request)).filter(pk=job_id).first()

    def render_change_form(  # noqa: PLR0917  Django's signature
        self,
        request: HttpRequest,
        context: dict[str, Any],
        add: bool = False,
        change: bool = False,
        form_url: str = "",
        obj: Job | None = None,
    ) -> HttpResponse:
        """Add history, neighbours and buttons to the page."""
        if obj is not None:
            counts = insights.count_workflow(obj.workflow_id) if obj.workflow_id else {}
            context |= {
                "buttons": self.buttons(request, obj, counts),
                "workflow": detail.workflow_of(counts, self.list_of(obj.workflow_id)),
                "edit_address": editing.address_for(self, request, obj),
                "reasons": explain(obj.pk).reasons if obj.status not in FINAL else [],
                "reasons_title": _WHY if obj.status == Status.PENDING else "Where it stands",
                "history": detail.history_of(obj),
                "neighbours": detail.neighbours_of(obj),
                "shown": detail.SHOWN,
            }
        return super().render_change_form(request, context, add, change, form_url, obj)
