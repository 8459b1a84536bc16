"""The page on which a job that waits is edited: payload, queue, priority, and when it runs.

What may be changed, and until when, `jobs.lifecycle` says; its refusals stand at their fields.
"""

import functools
import json
import uuid
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone

from jobs import lifecycle
from jobs.admin.detail import TEXT_LIMIT
from jobs.admin.forms import PayloadField, refuse
from jobs.admin.operating import OperatingAdmin
from jobs.errors import DilammeError, JobNotFound, TransitionRefused
from jobs.limits import LATEST
from jobs.models import Job
from jobs.states import Status

_TEMPLATE = "admin/dilamme/job/edit.html"
_MINUTE = "%Y-%m-%dT%H:%M:%S"  # as browsers write a local time


class JobForm(forms.Form):
    """What of a job is edited here."""

    payload = PayloadField()
    queue = forms.CharField()
    priority = forms.FloatField(help_text="1 (High) to 3 (Low); fractions are allowed.")
    run_at = forms.DateTimeField(
        label="Due", widget=forms.DateTimeInput({"type": "datetime-local", "step": "1"}, format=_MINUTE)
    )

    def __init__(self, data: Any, job: Any) -> None:
        due = job.run_at.replace(microsecond=0) if job.run_at <= LATEST else None
        values = {"payload": job.payload_text, "queue": job.queue, "priority": job.priority, "run_at": due}
        super().__init__(data, initial=values)
        self.fields["run_at"].required = due is not None
        self.fields["run_at"].help_text = f"In {timezone.get_current_timezone_name()}."
        if not _is_whole(job.payload_text):
            del self.fields["payload"]  # a part of it must not take its place

    def changes(self) -> dict[str, Any]:
        """Return the fields that were changed, as the service takes them."""
        return {name: self.cleaned_data[name] for name in self.changed_data}


def urls(owner: OperatingAdmin) -> list[URLPattern]:
    """Return the route of the page, below that of the list of jobs."""
    view = owner.admin_site.admin_view(functools.partial(_page, owner))
    return [path("<uuid:job_id>/edit/", view, name="dilamme_job_edit")]


def address_for(owner: OperatingAdmin, request: HttpRequest, job: Job) -> str:
    """Return the address of the page if this user may edit this job now, else nothing."""
    if job.status != Status.PENDING or not _may(owner, request):
        return ""
    return reverse("admin:dilamme_job_edit", args=[job.pk], current_app=owner.admin_site.name)


def _may(owner: OperatingAdmin, request: HttpRequest) -> bool:
    return owner.has_view_permission(request) and request.user.has_perm("dilamme.change_job")


def _page(owner: OperatingAdmin, request: HttpRequest, job_id: uuid.UUID) -> HttpResponse:
    """Show the form; after a POST change the job and go back to it, or say why not."""
    if not _may(owner, request):
        raise PermissionDenied
    job = owner.get_object(request, str(job_id))
    if job is None:
        raise Http404(f"There is no job {job_id}.")
    form = JobForm(request.POST if request.method == "POST" else None, job)
    if form.is_valid() and _edit(owner, request, job_id, form):
        return HttpResponseRedirect(owner.url_of(job_id))
    context = owner.admin_site.each_context(request) | {
        "title": f"Edit {job}", "opts": owner.opts, "media": owner.media, "form": form, "job": job,
        "address": owner.url_of(job_id),
    }  # fmt: skip
    return TemplateResponse(request, _TEMPLATE, context)


def _edit(owner: OperatingAdmin, request: HttpRequest, job_id: uuid.UUID, form: JobForm) -> bool:
    """Hand the changes over; return whether there is nothing left to do here."""
    if not form.has_changed():
        owner.message_user(request, "Nothing was changed.", messages.INFO)
        return True
    try:
        lifecycle.edit(job_id, actor=f"user:{request.user.get_username()}", **form.changes())
    except (TransitionRefused, JobNotFound) as error:
        owner.message_user(request, f"Not changed: {error}", messages.WARNING)
        return True
    except DilammeError as error:
        refuse(form, error, scheduled_at="run_at")
        return False
    owner.message_user(request, "The job was changed.", messages.SUCCESS)
    return True


def _is_whole(text: str) -> bool:
    """Whether a payload that PostgreSQL wrote is all there, and can be read here."""
    try:
        return len(text) < TEXT_LIMIT and isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False
