"""Queues and types over REST, editing, and why a job is not running."""

import uuid
from datetime import timedelta
from urllib.parse import urlencode

import pytest
from django.test import Client
from django.utils import timezone

from jobs import enqueue
from jobs.models import Job, PausedType, Queue
from tests.api.answers import JOBS, problems, read

pytestmark = pytest.mark.django_db(transaction=True)

QUEUES = "/api/v1/queues"
JSON = "application/json"


def test_queues_are_listed_with_their_limits_and_counts(api: Client) -> None:
    """Those with work, and those that are held back."""
    enqueue("free", queue="busy")
    enqueue("free", queue="busy", run_at=timezone.now() + timedelta(hours=1))
    read(api.put(f"{QUEUES}/held", {"concurrency": 3, "rate": 0.5}, content_type=JSON), 200)
    shown = {each["name"]: each for each in read(api.get(QUEUES), 200)["data"]}
    assert set(shown) == {"busy", "held"}
    assert (shown["busy"]["pending"], shown["busy"]["processing"], shown["busy"]["concurrency"]) == (2, 0, None)
    assert (shown["held"]["pending"], shown["held"]["concurrency"], shown["held"]["rate"]) == (0, 3, 0.5)


def test_a_queue_is_paused_and_resumed(api: Client) -> None:
    """With and without a time."""
    until = (timezone.now() + timedelta(hours=1)).isoformat()
    assert read(api.post(f"{QUEUES}/q/pause?{urlencode({'until': until})}"), 200)["data"]["paused"] is True
    assert Queue.objects.get().paused_until is not None
    assert read(api.post(f"{QUEUES}/q/pause"), 200)["data"]["paused_until"] is None
    assert read(api.post(f"{QUEUES}/q/resume"), 200)["data"]["paused"] is False
    ((field, _),) = problems(api.post(f"{QUEUES}/q/pause?until=2020-01-01T00:00Z"))
    assert field == "until"
    assert problems(api.put(f"{QUEUES}/q", {"burst": 3}, content_type=JSON))[0][0] == "burst"
    assert problems(api.put(f"{QUEUES}/q", {"rate": 0}, content_type=JSON))[0][0] == "rate"
    assert problems(api.post(f"{QUEUES}/two words/pause"))[0][0] == "queue"


def test_a_type_is_paused_and_resumed(api: Client) -> None:
    """In whatever queue."""
    assert read(api.post("/api/v1/types/free/pause"), 200)["data"] == {"type": "free", "until": None}
    read(api.post("/api/v1/types/free/resume"), 200)
    assert not PausedType.objects.exists()


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


def test_why_a_job_is_not_running_is_told(api: Client) -> None:
    """Every reason, for people and for programs."""
    job = enqueue("free", queue="q")
    read(api.post(f"{QUEUES}/q/pause"), 200)
    told = read(api.get(f"{JOBS}/{job.pk}/explain"), 200)["data"]
    assert (told["job_id"], told["status"]) == (str(job.pk), "pending")
    assert [reason["why"] for reason in told["reasons"]] == ["queue_paused", "no_worker"]
    assert told["reasons"][0]["text"] == "The queue 'q' is paused, until somebody resumes it."
    read(api.get(f"{JOBS}/{uuid.uuid4()}/explain"), 404)


def test_a_job_has_a_concurrency_key_and_a_step(api: Client) -> None:
    """They are stored, and jobs of a workflow are found by it."""
    workflow = str(uuid.uuid4())
    body = {"type": "free", "workflow_id": workflow, "step": "extra", "concurrency_key": "k"}
    made = read(api.post(JOBS, body, content_type=JSON), 201)["data"]
    assert (made["step"], made["concurrency_key"]) == ("extra", "k")
    enqueue("free")
    assert [job["id"] for job in read(api.get(f"{JOBS}?workflow_id={workflow}"), 200)["data"]] == [made["id"]]
