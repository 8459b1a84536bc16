"""Queues and types over REST: held back, limited, let go, and counted."""

import uuid
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client
from django.utils import timezone

from jobs import enqueue
from jobs.models import Job, PausedType, Queue
from tests.api.answers import problems, read

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


def test_all_limits_are_set_at_once(api: Client) -> None:
    """What is left out is not limited any more; a pause stays."""
    read(api.post(f"{QUEUES}/q/pause"), 200)
    read(api.put(f"{QUEUES}/q", {"concurrency": 3, "rate": 2, "burst": 4}, content_type=JSON), 200)
    data = read(api.put(f"{QUEUES}/q", {"concurrency_per_key": 1}, content_type=JSON), 200)["data"]
    assert data == {
        "name": "q", "paused": True, "paused_until": None, "concurrency": None, "concurrency_per_key": 1,
        "rate": None, "burst": None, "pending": 0, "processing": 0,
    }  # fmt: skip


def test_counting_reads_live_jobs_only(api: Client) -> None:
    """A queue whose jobs have ended is not listed, and no job that has ended is counted."""
    enqueue("free", queue="over")
    Job.objects.update(status="cancelled", finished_at=timezone.now())
    enqueue("free", queue="q")
    Job.objects.create(type="free", queue="q", status="processing", worker_id=uuid.UUID(int=5))
    shown = [(each["name"], each["pending"], each["processing"]) for each in read(api.get(QUEUES), 200)["data"]]
    assert shown == [("q", 1, 1)]


def test_a_list_is_a_fixed_number_of_queries(api: Client, django_assert_num_queries: Any) -> None:
    """However many queues there are."""
    for number in range(5):
        enqueue("free", queue=f"q{number}")
    with django_assert_num_queries(2):
        assert len(read(api.get(QUEUES), 200)["data"]) == 5
