"""Text that jobs control is text on every page, wherever it stands."""

import html
import uuid

import pytest
from django.urls import reverse
from django.utils.safestring import mark_safe

from jobs.models import JobDependency, JobEvent, Worker
from jobs.states import EventKind, Status
from tests.admin.rows import make_job, make_user

pytestmark = pytest.mark.django_db

HOSTILE = [
    "<script>pwned()</script>",
    "</script><script>pwned()</script>",
    '"><img src=x onerror=pwned()>',
    "' onmouseover='pwned()",
    "</pre></td></table><h1>pwned()",
    "{{ pwned }}{% pwned %}",
    mark_safe("<b>pwned()</b>"),  # claims to be safe
]


def _job_with(text: str):
    """Store a job with the text in each field that can hold it, with relatives and a history."""
    fields = {"type": text, "queue": text, "last_error": text, "payload": {text: [text]}, "result": {text: text}}
    fields |= {"metadata": {text: [text]}, "step": text, "unique_key": text, "workflow_id": uuid.UUID(int=5)}
    job = make_job(Status.FAILED, **fields)
    JobDependency.objects.create(child=job, parent=make_job(type=text), settled=True)
    JobDependency.objects.create(child=make_job(type=text, unmet=1), parent=job)
    JobEvent.objects.create(job=job, kind=EventKind.DEAD, attempt=1, actor=text, error=text, traceback=text)
    return job


def _assert_inert(page: str, text: str) -> None:
    """Look for the text in any form that a browser would take for markup."""
    assert text not in page.replace(html.escape(text), "")
    assert html.escape(text) in page


@pytest.mark.parametrize("text", HOSTILE)
def test_the_page_of_a_job(superuser, text):
    """Type, queue, step, key, payload, metadata, result, error, history and neighbours are inert on its page."""
    page = superuser.get(reverse("admin:dilamme_job_change", args=[_job_with(text).pk])).text
    _assert_inert(page, text)
    assert page.count(html.escape(text)) >= 12


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("page", ["job_changelist", "deadletter_changelist"])
def test_the_lists(superuser, page, text):
    """Type, queue and error are inert in the lists."""
    _job_with(text)
    _assert_inert(superuser.get(reverse(f"admin:dilamme_{page}")).text, text)


@pytest.mark.parametrize("text", HOSTILE)
def test_the_pages_of_a_worker(superuser, text):
    """Name, queues and types are inert in the list and on the page of a worker."""
    worker = Worker.objects.create(
        name=text, concurrency=1, queues=[text], types=[text], lease_expires_at="2026-01-01T00:00:00Z"
    )
    _assert_inert(superuser.get(reverse("admin:dilamme_worker_changelist")).text, text)
    _assert_inert(superuser.get(reverse("admin:dilamme_worker_change", args=[worker.pk])).text, text)


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("parameter", ["type", "queue", "q", "status", "workflow"])
def test_what_stands_in_the_address(superuser, parameter, text):
    """What is filtered or searched for is inert in the page that shows it."""
    page = superuser.get(reverse("admin:dilamme_job_changelist"), {parameter: text}).text
    assert text not in page.replace(html.escape(text), "")


def test_the_name_of_an_operator(client):
    """The name of a user goes through the history as text."""
    user = make_user("<script>pwned()</script>", "view_job", "retry_job")
    client.force_login(user)
    job = make_job(Status.FAILED)
    page = client.post(reverse("admin:dilamme_job_retry", args=[job.pk]), follow=True).text
    _assert_inert(page, "<script>pwned()</script>")
