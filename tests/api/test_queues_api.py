"""Queues and types over REST: held back, limited, let go, and counted."""

import uuid
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client
from django.utils import timezone

from jobs import enqueue
from jobs.models import Job, PausedType, Queue
from tests.api.answers import problems, read

pytestmark = pytest.mark.django_db(transaction=True)

QUEUES, TYPES = "/api/v1/queues", "/api/v1/types"
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
    assert read(api.post(f"{TYPES}/free/pause"), 200)["data"] == {"type": "free", "until": None}
    read(api.post(f"{TYPES}/free/resume"), 200)
    assert not PausedType.objects.exists()


def test_paused_types_are_listed(api: Client) -> None:
    """By name, with the time; what was resumed, or goes on by itself by now, is paused no more."""
    until = (timezone.now() + timedelta(hours=1)).isoformat()
    assert read(api.get(f"{TYPES}/paused"), 200)["data"] == []
    for name in ("strict", "free", "gone", "over"):
        read(api.post(f"{TYPES}/{name}/pause?{urlencode({'until': until})}"), 200)
    read(api.post(f"{TYPES}/free/pause"), 200)
    read(api.post(f"{TYPES}/gone/resume"), 200)
    PausedType.objects.filter(type="over").update(until=timezone.now() - timedelta(seconds=1))
    body = read(api.get(f"{TYPES}/paused"), 200)
    free, strict = body["data"]
    assert (free, strict["type"]) == ({"type": "free", "until": None}, "strict")
    assert datetime.fromisoformat(strict["until"]) - datetime.fromisoformat(until) < timedelta(seconds=1)
    assert (body["message"], body["meta"]) == ("2 paused types.", {"limit": 50, "next_after": None})


@pytest.mark.parametrize("listed", [QUEUES, f"{TYPES}/paused"])
def test_lists_are_paged_by_name(api: Client, listed: str) -> None:
    """Each page leads to the next and the last to none, whatever comes and goes meanwhile."""
    kind, field = (QUEUES, "name") if listed == QUEUES else (TYPES, "type")
    for name in "gbfdaec":
        read(api.post(f"{kind}/{name}/pause"), 200)
    pages, after = [], None
    while after is not None or not pages:
        query = {"limit": 3} if after is None else {"limit": 3, "after": after}
        body = read(api.get(f"{listed}?{urlencode(query)}"), 200)
        pages.append("".join(each[field] for each in body["data"]))
        after = body["meta"]["next_after"]
        assert body["meta"] == {"limit": 3, "next_after": after}
        assert after is None or pages[-1].endswith(after)
        if len(pages) == 1:
            read(api.post(f"{kind}/aa/pause"), 200)
            PausedType.objects.filter(type="c").delete()
            Queue.objects.filter(name="c").delete()
    assert pages == ["abc", "def", "g"]
    assert len(read(api.get(f"{listed}?limit=7"), 200)["data"]) == 7
    assert read(api.get(f"{listed}?limit=7"), 200)["meta"]["next_after"] is None
    assert read(api.get(f"{listed}?after=zz"), 200)["data"] == []


@pytest.mark.parametrize("listed", [QUEUES, f"{TYPES}/paused"])
@pytest.mark.parametrize("query", ["limit=0", "limit=201", "limit=x", "after=", "after=two%20words", "after=%00"])
def test_a_page_that_is_none_is_refused(api: Client, listed: str, query: str) -> None:
    """At the field that is wrong."""
    ((field, _),) = problems(api.get(f"{listed}?{query}"))
    assert field == query.partition("=")[0]


def test_a_page_has_queues_with_and_without_a_row(api: Client) -> None:
    """In one order, each with its own counts."""
    for name in ("b", "d"):
        read(api.post(f"{QUEUES}/{name}/pause"), 200)
    for name in ("a", "c", "c"):
        enqueue("free", queue=name)
    Job.objects.create(type="free", queue="e", status="processing", worker_id=uuid.UUID(int=5))
    shown = []
    for after in ("", "?after=a", "?after=c", "?after=e"):
        page = read(api.get(f"{QUEUES}{after}{'&' if after else '?'}limit=2"), 200)["data"]
        shown.append([(each["name"], each["paused"], each["pending"], each["processing"]) for each in page])
    a, b, c = ("a", False, 1, 0), ("b", True, 0, 0), ("c", False, 2, 0)
    d, e = ("d", True, 0, 0), ("e", False, 0, 1)
    assert shown == [[a, b], [b, c], [d, e], []]


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
