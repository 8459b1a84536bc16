"""The form of a job that waits: what may be changed, by whom, and what is said when it may not."""

import uuid
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from jobs import enqueue
from jobs.admin import detail
from jobs.models import Job, JobEvent
from jobs.states import Status
from tests.admin.acting import client_of, problems
from tests.admin.rows import make_job
from tests.support import history_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("types")]


@pytest.fixture
def editor(db: None) -> Client:
    """Return the client of somebody who may edit jobs."""
    return client_of("view_job", "change_job")


def page_of(job: Any, page: str = "edit") -> str:
    """Return the address of a page of a job."""
    return reverse(f"admin:dilamme_job_{page}", args=[job.pk])


def form_of(client: Client, job: Job) -> dict[str, Any]:
    """Return what the form sends if nothing is changed."""
    form = client.get(page_of(job)).context["form"]
    return {field.name: field.value() for field in form} | {"run_at": timezone.localtime(job.run_at).isoformat()[:19]}


def test_a_pending_job_is_changed(editor: Client) -> None:
    """The page leads there; what was changed is written, and the history says by whom."""
    job = enqueue("strict", {"number": 1})
    assert f'href="{page_of(job)}"' in editor.get(page_of(job, "change")).text
    changes = {"payload": '{"number": 2}', "queue": "fast", "priority": "1", "run_at": "2031-02-03T04:05:06"}
    page = editor.post(page_of(job), changes, follow=True)
    assert page.redirect_chain == [(page_of(job, "change"), 302)]
    assert "The job was changed." in page.text
    changed = Job.objects.get()
    assert (changed.payload, changed.queue, changed.priority) == ({"number": 2}, "fast", 1)
    assert f"{changed.run_at:%Y-%m-%d %H:%M:%S}" == "2031-02-03 04:05:06"
    event = JobEvent.objects.get()
    assert (event.kind, event.actor) == ("edited", "user:somebody")


def test_what_stays_is_not_written(editor: Client) -> None:
    """Only the fields that differ are handed over; nothing changed is no event."""
    job = enqueue("strict", {"number": 1})
    assert "Nothing was changed." in editor.post(page_of(job), form_of(editor, job), follow=True).text
    assert history_of(job.pk) == []
    editor.post(page_of(job), form_of(editor, job) | {"priority": "3"})
    assert (Job.objects.get().priority, Job.objects.get().run_at) == (3, job.run_at)
    assert JobEvent.objects.get().error == "priority: 3.0"


@pytest.mark.parametrize(
    ("changes", "field", "text"),
    [
        ({"payload": '{"number": "many"}'}, "payload", "The payload does not fit strict"),
        ({"payload": "[" * 100_000}, "payload", "This is no JSON that can be read"),
        ({"payload": '{"number": "\\ud800"}'}, "payload", ""),
        ({"queue": "two words"}, "queue", "use 1 to 100 letters"),
        ({"queue": ""}, "queue", "This field is required."),
        ({"priority": "4"}, "priority", "use a number from 1 (High) to 3 (Low)."),
        ({"run_at": "9999-12-31T23:59:59"}, "run_at", "use a time from 1970-01-01"),
        ({"run_at": "tomorrow"}, "run_at", "Enter a valid date/time."),
    ],
)
def test_what_no_job_could_have_is_refused_at_its_field(
    editor: Client, changes: dict[str, str], field: str, text: str
) -> None:
    """The form is shown again with the service's own words."""
    job = enqueue("strict", {"number": 1})
    response = editor.post(page_of(job), form_of(editor, job) | changes)
    found = problems(response)
    assert list(found) == [field]
    assert text in found[field][0]
    assert history_of(job.pk) == []


@pytest.mark.parametrize("status", sorted(set(Status.values) - {"pending"}))
def test_a_job_that_does_not_wait_is_not_edited(editor: Client, status: str) -> None:
    """Its page offers no form, and one that was open too long is answered with the reason."""
    job = make_job(status, type="strict", payload={"number": 1})
    assert page_of(job) not in editor.get(page_of(job, "change")).text
    page = editor.post(page_of(job), form_of(editor, job) | {"priority": "3"}, follow=True).text
    assert f"Not changed: It is {status}; only a job that is pending can be edited." in page
    assert Job.objects.get().priority == 2


@pytest.mark.parametrize("permissions", [["view_job", "cancel_job", "retry_job"], ["change_job"], []])
def test_it_needs_its_permission(permissions: list[str]) -> None:
    """And that to see jobs; the page of the job offers it to nobody else."""
    job = enqueue("strict", {"number": 1})
    client = client_of(*permissions)
    assert client.get(page_of(job)).status_code == 403
    assert client.post(page_of(job), {"priority": "1"}).status_code == 403
    if "view_job" in permissions:
        assert page_of(job) not in client.get(page_of(job, "change")).text
    assert history_of(job.pk) == []


def test_a_foreign_site_cannot_edit(editor: Client) -> None:
    """A POST without the form's token is refused."""
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = editor.cookies
    job = enqueue("strict", {"number": 1})
    assert strict.post(page_of(job), {"priority": "1"}).status_code == 403


def test_a_job_that_does_not_exist_is_404(editor: Client) -> None:
    """Nobody is asked to edit it."""
    assert editor.get(reverse("admin:dilamme_job_edit", args=[uuid.uuid4()])).status_code == 404


@pytest.mark.parametrize("payload", ["[" * 3000 + "]" * 3000, '{"n": "' + "x" * detail.TEXT_LIMIT + '"}'])
def test_a_payload_that_cannot_be_shown_whole_stays(editor: Client, payload: str) -> None:
    """A part of it never takes its place; the rest of the job can be edited if the service can read it."""
    job = make_job(type="free")
    with connection.cursor() as cursor:
        cursor.execute("update dilamme_job set payload = %s::jsonb where id = %s", [payload, job.pk])
    page = editor.get(page_of(job))
    assert 'name="payload"' not in page.text
    assert "too large or too deep to be edited here" in page.text


def test_hostile_text_is_inert(editor: Client) -> None:
    """Whatever stands in payload or queue, and whatever was typed."""
    text = "</textarea><script>pwned()</script>"
    job = make_job(type="free", queue=text, payload={"a": text})
    assert text not in editor.get(page_of(job)).text
    assert text not in editor.post(page_of(job), {"payload": text, "queue": text, "priority": text}).text
