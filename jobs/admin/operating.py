"""Retry and Cancel: as actions on a list, and as buttons of one job. Each has a permission of its own.

The work is done by `jobs.lifecycle`; this hands over who asked, and puts the answer into sentences.
"""

import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.views.decorators.http import require_POST

from jobs import lifecycle
from jobs.admin.base import COUNTED, ReadOnlyAdmin
from jobs.admin.spool import notices
from jobs.models import Job
from jobs.spool.forwarder import forwarder
from jobs.states import FINAL, RETRYABLE, Status

_BATCH = 500  # jobs changed in one transaction


@dataclass(frozen=True, slots=True)
class Verb:
    """What an operator can do, and how it is told: a word for each status that a job may have afterwards."""

    run: Callable[..., lifecycle.Answer]
    done: Mapping[str, str]


RETRY = Verb(lifecycle.retry, {Status.PENDING: "Will run again"})
CANCEL = Verb(lifecycle.cancel, {Status.CANCELLED: "Cancelled", Status.PROCESSING: "Asked to stop"})


@dataclass(frozen=True, slots=True)
class Button:
    """Something that can be done to one job now, by this user: for the detail page."""

    label: str
    name: str  # of its route, in the admin's namespace


class OperatingAdmin(ReadOnlyAdmin):
    """A list of jobs with the actions of operators."""

    def has_view_permission(self, request: HttpRequest, obj: Job | None = None) -> bool:  # noqa: ARG002  Django's
        """Whoever may view jobs may view them in every list."""
        return request.user.has_perm("dilamme.view_job")

    def has_retry_permission(self, request: HttpRequest) -> bool:
        """Whether this user may retry jobs."""
        return self.has_view_permission(request) and request.user.has_perm("dilamme.retry_job")

    def has_cancel_permission(self, request: HttpRequest) -> bool:
        """Whether this user may cancel jobs."""
        return self.has_view_permission(request) and request.user.has_perm("dilamme.cancel_job")

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Show the list, and above it what the spool has to say."""
        if request.method == "GET" and self.has_view_permission(request):
            for notice in notices(forwarder.status()):
                self.message_user(request, notice, messages.WARNING)
        return super().changelist_view(request, extra_context)

    @admin.action(permissions=["retry"], description="Retry selected jobs")
    def retry_selected(self, request: HttpRequest, queryset: QuerySet[Job]) -> None:
        """Retry what is selected."""
        self._operate_on_selection(RETRY, request, queryset)

    @admin.action(permissions=["cancel"], description="Cancel selected jobs")
    def cancel_selected(self, request: HttpRequest, queryset: QuerySet[Job]) -> None:
        """Cancel what is selected."""
        self._operate_on_selection(CANCEL, request, queryset)

    def url_of(self, job_id: object) -> str:
        """Return the address of a job's page."""
        return reverse("admin:dilamme_job_change", args=[job_id], current_app=self.admin_site.name)

    def operating_urls(self) -> list[URLPattern]:
        """Return the routes behind the buttons."""
        return [
            path(f"<uuid:job_id>/{name}/", self.admin_site.admin_view(require_POST(view)), name=f"dilamme_job_{name}")
            for name, view in (("retry", self.retry_view), ("cancel", self.cancel_view))
        ]

    def buttons(self, request: HttpRequest, job: Job) -> list[Button]:
        """Return what this user can do to the job now."""
        can_retry = job.status in RETRYABLE and self.has_retry_permission(request)
        can_cancel = job.status not in FINAL and self.has_cancel_permission(request)
        return [
            *([Button("Retry", "admin:dilamme_job_retry")] if can_retry else []),
            *([Button("Cancel", "admin:dilamme_job_cancel")] if can_cancel else []),
        ]

    def retry_view(self, request: HttpRequest, job_id: uuid.UUID) -> HttpResponse:
        """Retry one job and go back to it."""
        if not self.has_retry_permission(request):
            raise PermissionDenied
        return self._operate_on_one(RETRY, request, job_id)

    def cancel_view(self, request: HttpRequest, job_id: uuid.UUID) -> HttpResponse:
        """Cancel one job and go back to it."""
        if not self.has_cancel_permission(request):
            raise PermissionDenied
        return self._operate_on_one(CANCEL, request, job_id)

    def _operate_on_one(self, verb: Verb, request: HttpRequest, job_id: uuid.UUID) -> HttpResponse:
        self._tell(verb, request, verb.run([job_id], actor=_actor(request)))
        return HttpResponseRedirect(self.url_of(job_id))

    def _operate_on_selection(self, verb: Verb, request: HttpRequest, queryset: QuerySet[Job]) -> None:
        # The list says "all 10,000" when it has counted no further, and means the newest of them.
        ids = list(queryset.values_list("pk", flat=True)[:COUNTED])
        whole = lifecycle.Answer()
        for batch in _batches(ids):
            answer = verb.run(batch, actor=_actor(request))
            whole.changed |= answer.changed
            whole.refused |= answer.refused
        self._tell(verb, request, whole)

    def _tell(self, verb: Verb, request: HttpRequest, answer: lifecycle.Answer) -> None:
        """Say how many jobs changed, and for each reason how many did not."""
        for status, count in Counter(answer.changed.values()).items():
            self.message_user(request, f"{verb.done[status]}: {_jobs(count)}.", messages.SUCCESS)
        for reason, count in Counter(answer.refused.values()).items():
            self.message_user(request, f"Not changed: {_jobs(count)}. {reason}", messages.WARNING)
        if not answer.changed and not answer.refused:
            self.message_user(request, "What you selected is not in this list any more.", messages.WARNING)


def _batches(ids: Sequence[Any]) -> list[Sequence[Any]]:
    return [ids[start : start + _BATCH] for start in range(0, len(ids), _BATCH)]


def _jobs(count: int) -> str:
    return "1 job" if count == 1 else f"{count:,} jobs"


def _actor(request: HttpRequest) -> str:
    return f"user:{request.user.get_username()}"
