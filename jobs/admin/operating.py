"""Retry and Cancel: as actions on a list, as buttons of one job, and of all of its workflow. Each has its permission.

The work is done by `jobs.lifecycle`; this hands over who asked, and puts the answer into sentences.
"""

import dataclasses
import functools
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.views.decorators.http import require_POST

from jobs import insights, lifecycle
from jobs.admin.base import COUNTED, ReadOnlyAdmin
from jobs.admin.spool import notices
from jobs.models import Job
from jobs.spool.forwarder import forwarder
from jobs.states import FINAL, RETRYABLE, Status

_BATCH = 500  # jobs changed in one transaction


@dataclass(frozen=True, slots=True)
class Verb:
    """What an operator can do, and how it is told: a word for each status that a job may have afterwards.

    `also` is the word for what changes with the jobs, because it depends on them.
    """

    run: Callable[..., lifecycle.Answer]
    done: Mapping[str, str]
    also: str
    permission: str
    nothing: str = "What you selected is not in this list any more."


RETRY = Verb(lifecycle.retry, {Status.PENDING: "Will run again"}, "Wait again with them", "retry")
RETRY_ALONE = dataclasses.replace(RETRY, run=functools.partial(lifecycle.retry, downstream=False))
RETRY_WORKFLOW = dataclasses.replace(
    RETRY, run=lifecycle.retry_workflow, nothing="No job of this workflow has failed any more."
)
CANCEL = Verb(
    lifecycle.cancel,
    {Status.CANCELLED: "Cancelled", Status.PROCESSING: "Asked to stop"},
    "Cancelled with them",
    "cancel",
)
CANCEL_WORKFLOW = dataclasses.replace(
    CANCEL, run=lifecycle.cancel_workflow, nothing="All jobs of this workflow have ended already."
)


@dataclass(frozen=True, slots=True)
class Button:
    """Something that can be done from the page of a job: to the job, or to the workflow that it belongs to."""

    name: str  # of its route
    label: str
    verb: Verb
    of_workflow: bool
    statuses: Collection[str]  # of the job, or of any job of the workflow, for it to do something

    @property
    def url_name(self) -> str:
        """The name of its route, whole."""
        return f"admin:dilamme_job_{self.name}"


_UNFINISHED = frozenset(Status) - FINAL
BUTTONS = (
    Button("retry", "Retry", RETRY, False, RETRYABLE),
    Button("cancel", "Cancel", CANCEL, False, _UNFINISHED),
    Button("retry_workflow", "Retry failed jobs of the workflow", RETRY_WORKFLOW, True, {Status.FAILED}),
    Button("cancel_workflow", "Cancel whole workflow", CANCEL_WORKFLOW, True, _UNFINISHED),
)


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

    @admin.action(permissions=["retry"], description="Retry selected jobs without their dependants")
    def retry_alone_selected(self, request: HttpRequest, queryset: QuerySet[Job]) -> None:
        """Retry what is selected, and leave what was cancelled because of it as it is."""
        self._operate_on_selection(RETRY_ALONE, request, queryset)

    @admin.action(permissions=["cancel"], description="Cancel selected jobs")
    def cancel_selected(self, request: HttpRequest, queryset: QuerySet[Job]) -> None:
        """Cancel what is selected."""
        self._operate_on_selection(CANCEL, request, queryset)

    def url_of(self, job_id: object) -> str:
        """Return the address of a job's page."""
        return reverse("admin:dilamme_job_change", args=[job_id], current_app=self.admin_site.name)

    def list_of(self, workflow_id: object) -> str:
        """Return the address of the list of a workflow's jobs."""
        address = reverse("admin:dilamme_job_changelist", current_app=self.admin_site.name)
        return f"{address}?workflow={workflow_id}"

    def operating_urls(self) -> list[URLPattern]:
        """Return the routes behind the buttons."""
        return [
            path(
                f"<uuid:job_id>/{button.name}/",
                self.admin_site.admin_view(require_POST(functools.partial(self._press, button))),
                name=f"dilamme_job_{button.name}",
            )
            for button in BUTTONS
        ]

    def buttons(self, request: HttpRequest, job: Job, workflow: Mapping[str, int]) -> list[Button]:
        """Return what this user can do now; `workflow` counts the jobs of its workflow by status."""
        present = [status for status, count in workflow.items() if count]
        return [
            button
            for button in BUTTONS
            if any(status in button.statuses for status in (present if button.of_workflow else [job.status]))
            and self._may(button.verb, request)
        ]

    def _may(self, verb: Verb, request: HttpRequest) -> bool:
        return self.has_retry_permission(request) if verb.permission == "retry" else self.has_cancel_permission(request)

    def _press(self, button: Button, request: HttpRequest, job_id: uuid.UUID) -> HttpResponse:
        """Do what a button says, and go back to the job."""
        if not self._may(button.verb, request):
            raise PermissionDenied
        target = insights.workflow_of(job_id) if button.of_workflow else [job_id]
        if target is None:
            self.message_user(request, "This job belongs to no workflow.", messages.WARNING)
        else:
            self._tell(button.verb, request, button.verb.run(target, actor=_actor(request)))
        return HttpResponseRedirect(self.url_of(job_id))

    def _operate_on_selection(self, verb: Verb, request: HttpRequest, queryset: QuerySet[Job]) -> None:
        # The list says "all 10,000" when it has counted no further, and means the newest of them.
        ids = list(queryset.values_list("pk", flat=True)[:COUNTED])
        whole = lifecycle.Answer()
        for batch in _batches(ids):
            answer = verb.run(batch, actor=_actor(request))
            whole.changed |= answer.changed
            whole.refused |= answer.refused
            whole.also |= answer.also
        # What an earlier batch changed with its jobs was changed, though its own batch had nothing left to do.
        for id_ in whole.also.keys() & set(ids):
            whole.refused.pop(id_, None)
        self._tell(verb, request, whole)

    def _tell(self, verb: Verb, request: HttpRequest, answer: lifecycle.Answer) -> None:
        """Say how many jobs changed, and for each reason how many did not."""
        for status, count in Counter(answer.changed.values()).items():
            self.message_user(request, f"{verb.done[status]}: {_jobs(count)}.", messages.SUCCESS)
        if answer.also:
            self.message_user(request, f"{verb.also}: {_jobs(len(answer.also))}.", messages.SUCCESS)
        for reason, count in Counter(answer.refused.values()).items():
            self.message_user(request, f"Not changed: {_jobs(count)}. {reason}", messages.WARNING)
        if not answer.changed and not answer.refused:
            self.message_user(request, verb.nothing, messages.WARNING)


def _batches(ids: Sequence[Any]) -> list[Sequence[Any]]:
    return [ids[start : start + _BATCH] for start in range(0, len(ids), _BATCH)]


def _jobs(count: int) -> str:
    return "1 job" if count == 1 else f"{count:,} jobs"


def _actor(request: HttpRequest) -> str:
    return f"user:{request.user.get_username()}"
