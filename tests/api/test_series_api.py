"""Series over REST: kept, paused, run by hand, and made with a job."""

import uuid
from typing import Any

import pytest
from django.test import Client

from jobs import recurring
from jobs.models import Job, Series
from jobs.queries import DjangoSession
from jobs.registry import registry
from jobs.schedules import Schedule
from jobs.series import edit_series, pause_series
from tests.api.answers import JOBS, problems, read
from tests.support import handler

pytestmark = pytest.mark.django_db(transaction=True)

SERIES = "/api/v1/series"
JSON = "application/json"
NEW = {"name": "nightly", "type": "free", "payload": {"n": 1}, "cron": "0 3 * * *", "zone": "Europe/Paris"}


def make(api: Client, **changes: Any) -> dict[str, Any]:
    """Make a series."""
    body = read(api.post(SERIES, {**NEW, **changes}, content_type=JSON), 201)
    return body["data"]  # type: ignore[no-any-return]


def test_a_series_is_made_shown_listed_and_removed(api: Client) -> None:
    """The answer has every field and the next five slots; its jobs stay when it goes."""
    made = make(api)
    assert (made["name"], made["cron"], made["mode"], made["paused"], len(made["preview"])) == (
        "nightly", "0 3 * * *", "grid", False, 5
    )  # fmt: skip
    assert made["next_at"] == made["preview"][0]
    assert read(api.get(f"{SERIES}/nightly"), 200)["data"] == made
    make(api, name="hourly")
    page = read(api.get(f"{SERIES}?limit=1"), 200)
    assert ([each["name"] for each in page["data"]], page["meta"]["next_after"]) == (["hourly"], "hourly")
    page = read(api.get(f"{SERIES}?limit=1&after=hourly"), 200)
    assert ([each["name"] for each in page["data"]], page["meta"]["next_after"]) == (["nightly"], None)
    read(api.delete(f"{SERIES}/nightly"), 200)
    assert read(api.get(f"{SERIES}/nightly"), 404)["message"] == "There is no series 'nightly'."


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"cron": "0 0 31 2 *"}, "cron"),
        ({"cron": "nonsense"}, "cron"),
        ({"interval": "5m"}, "interval"),
        ({"zone": "Nowhere"}, "cron"),
        ({"type": "strict"}, "payload"),
        ({"type": "nobody_knows_it"}, "type"),
        ({"catch_up": "some"}, "catch_up"),
        ({"name": "two words"}, "name"),
        ({"wrong": 1}, "wrong"),
    ],
)
def test_a_series_that_could_never_fire_is_422(api: Client, changes: dict[str, Any], field: str) -> None:
    """The answer names the field, and nothing is stored."""
    ((found, _),) = problems(api.post(SERIES, {**NEW, **changes}, content_type=JSON))
    assert (found, Series.objects.count()) == (field, 0)


def test_a_series_is_changed_paused_resumed_and_run(api: Client) -> None:
    """Each answer shows how it stands then."""
    make(api)
    changed = read(api.patch(f"{SERIES}/nightly", {"cron": "0 4 * * *", "jitter": 5}, content_type=JSON), 200)["data"]
    assert (changed["cron"], changed["jitter"], changed["zone"]) == ("0 4 * * *", 5, "Europe/Paris")
    assert problems(api.patch(f"{SERIES}/nightly", {"cron": "x"}, content_type=JSON))[0][0] == "cron"
    paused = read(api.post(f"{SERIES}/nightly/pause"), 200)["data"]
    assert (paused["paused"], paused["preview"]) == (True, [])
    assert read(api.post(f"{SERIES}/nightly/resume"), 200)["data"]["paused"] is False
    job = read(api.post(f"{SERIES}/nightly/run"), 201)["data"]
    assert (Job.objects.get().pk.hex, Job.objects.get().payload) == (job["id"].replace("-", ""), {"n": 1})


def test_what_the_code_declares_is_paused_here_and_changed_there(api: Client) -> None:
    """409 says where."""
    with handler(lambda: None, name="declared") as task:
        object.__setattr__(task.type, "schedule", Schedule(every="1h"))
        registry.add(task.type)
        recurring.sync_declared(DjangoSession())
    for response in (
        api.patch(f"{SERIES}/declared", {"interval": "2h"}, content_type=JSON),
        api.delete(f"{SERIES}/declared"),
    ):
        assert "is declared in code" in read(response, 409)["message"]


def test_a_job_with_an_interval_makes_its_series(api: Client) -> None:
    """Both are made or none."""
    body = read(api.post(JOBS, {"type": "free", "interval": "30s"}, content_type=JSON), 201)
    series = Series.objects.get(name=body["meta"]["series"])
    assert (series.interval, series.mode, str(series.last_job_id)) == ("30s", "after", body["data"]["id"])
    ((field, _),) = problems(api.post(JOBS, {"type": "free", "interval": "often"}, content_type=JSON))
    assert (field, Job.objects.count(), Series.objects.count()) == ("interval", 1, 1)


def test_a_job_says_which_series_it_is_of(api: Client) -> None:
    """Also one that was run by hand, and the one that the series was made with."""
    series = make(api)
    assert read(api.post(f"{SERIES}/nightly/run"), 201)["data"]["series_id"] == series["id"]
    body = read(api.post(JOBS, {"type": "free", "interval": "1h"}, content_type=JSON), 201)
    shown = read(api.get(f"{SERIES}/{body['meta']['series']}"), 200)["data"]
    assert (body["data"]["series_id"], shown["last_job_id"]) == (shown["id"], body["data"]["id"])
    assert read(api.get(f"{JOBS}/{body['data']['id']}"), 200)["data"]["series_id"] == shown["id"]
    assert read(api.post(JOBS, {"type": "free"}, content_type=JSON), 201)["data"]["series_id"] is None


def test_null_takes_back_what_may_be_missing(api: Client) -> None:
    """The queue falls back to that of the type; a rule is replaced by emptying the other one."""
    make(api, queue="mail", priority=1, ends_at="2040-01-01T00:00:00Z")
    gone = {"queue": None, "priority": None, "ends_at": None, "zone": None}
    changed = read(api.patch(f"{SERIES}/nightly", gone, content_type=JSON), 200)["data"]
    assert (changed["queue"], changed["priority"], changed["ends_at"]) == (None, None, None)
    assert changed["zone"] == "Europe/Paris"
    changed = read(api.patch(f"{SERIES}/nightly", {"cron": "", "interval": "5m"}, content_type=JSON), 200)["data"]
    assert (changed["cron"], changed["interval"]) == ("", "5m")


def test_a_name_that_is_taken_is_422(api: Client) -> None:
    """The first series stays."""
    make(api)
    ((field, message),) = problems(api.post(SERIES, NEW, content_type=JSON))
    assert (field, message) == ("name", "A series is called 'nightly' already; take another name.")


@pytest.mark.parametrize(
    ("method", "act"),
    [("get", ""), ("patch", ""), ("delete", ""), ("post", "/pause"), ("post", "/resume"), ("post", "/run")],
)
def test_a_series_that_does_not_exist_is_404(api: Client, method: str, act: str) -> None:
    """Its name is told back, whatever was to be done."""
    response = getattr(api, method)(f"{SERIES}/nobody{act}", data={} if method == "patch" else None, content_type=JSON)
    assert read(response, 404)["message"] == "There is no series 'nobody'."


def test_an_edit_leaves_alone_what_a_worker_moves(api: Client) -> None:
    """A tick between reading and writing is not undone."""
    make(api)
    stale = Series.objects.get()
    Series.objects.update(last_job_id=uuid.UUID(int=5), skipped=3)
    pause_series(stale)
    edit_series(stale, queue="mail")
    kept = Series.objects.get()
    assert (kept.paused, kept.queue, kept.skipped, kept.last_job_id) == (True, "mail", 3, uuid.UUID(int=5))
