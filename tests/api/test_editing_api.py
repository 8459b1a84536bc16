"""A pending job is changed over REST, and one that was claimed is not."""

import uuid

import pytest
from django.test import Client
from django.utils import timezone

from jobs import enqueue
from jobs.models import Job, JobEvent
from tests.api.answers import JOBS, problems, read
from tests.support import history_of

pytestmark = pytest.mark.django_db

JSON = "application/json"


def test_a_pending_job_is_changed(api: Client) -> None:
    """And one that was claimed is not."""
    job = enqueue("strict", {"number": 1})
    changes = {"payload": {"number": 2}, "priority": 1, "queue": "fast", "scheduled_at": "2030-01-01T00:00:00Z"}
    shown = read(api.patch(f"{JOBS}/{job.pk}", changes, content_type=JSON), 200)["data"]
    assert (shown["payload"], shown["priority"], shown["queue"]) == ({"number": 2}, 1, "fast")
    assert shown["run_at"].startswith("2030-01-01")
    assert [event["kind"] for event in shown["events"]] == ["edited"]
    assert problems(api.patch(f"{JOBS}/{job.pk}", {"payload": {}}, content_type=JSON))[0][0] == "payload"
    assert problems(api.patch(f"{JOBS}/{job.pk}", {}, content_type=JSON))[0][0] == "payload"
    Job.objects.update(status="cancelled", finished_at=timezone.now())
    answer = read(api.patch(f"{JOBS}/{job.pk}", {"priority": 2}, content_type=JSON), 409)
    assert answer["message"] == "It is cancelled; only a job that is pending can be edited."
    read(api.patch(f"{JOBS}/{uuid.uuid4()}", {"priority": 2}, content_type=JSON), 404)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"priority": 4}, "priority"),
        ({"queue": "two words"}, "queue"),
        ({"scheduled_at": "2030-01-01T00:00:00"}, "scheduled_at"),
        ({"payload": [1]}, "payload"),
        ({"payload": {"number": "many"}}, "payload"),
        ({"max_attempts": 5}, "max_attempts"),
        ({"priority": None}, "payload"),
    ],
)
def test_what_no_job_could_have_is_422(api: Client, changes: dict[str, object], field: str) -> None:
    """The answer names the field, and nothing is changed."""
    job = enqueue("strict", {"number": 1})
    ((found, _),) = problems(api.patch(f"{JOBS}/{job.pk}", changes, content_type=JSON))
    assert (found, history_of(job.pk)) == (field, [])


def test_the_history_says_who_changed_what(api: Client) -> None:
    """By the name of the key."""
    job = enqueue("free")
    read(api.patch(f"{JOBS}/{job.pk}", {"priority": 1}, content_type=JSON), 200)
    event = JobEvent.objects.get()
    assert (event.kind, event.actor, event.error) == ("edited", "api:tests", "priority: 1.0")
