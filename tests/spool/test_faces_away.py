"""What REST, health, metrics and the admin say while the database is away, and after."""

import json
import uuid

import pytest
from django.test import Client
from django.utils import timezone

from jobs.models import Job
from jobs.spool.forwarder import forwarder
from jobs.spool.records import SpooledJob
from tests.admin.rows import make_user
from tests.spool.server import KEY
from tests.support import wait_until

JOBS = "/api/v1/jobs"


@pytest.fixture
def api() -> Client:
    """A client with a valid key."""
    return Client(raise_request_exception=False, headers={"X-API-Key": KEY})


def post(api: Client, number: object = 1, **more: object):
    """Post a job."""
    body = {"type": "remember", "payload": {"number": number}, **more}
    return api.post(JOBS, json.dumps(body), content_type="application/json")


def test_a_spooled_job_is_answered_202_and_found_under_its_id_later(gate, kind, api):
    """The answer says what happened, and the id holds."""
    gate.shut()
    response = post(api, scheduled_at="2030-01-01T00:00:00Z", priority=1.5)
    assert response.status_code == 202
    answer = response.json()
    assert answer["message"] == "The database is away. The job is kept safe here, and made as soon as it is back."
    assert set(answer["data"]) == {"id", "type", "queue", "priority", "scheduled_at", "max_attempts"}
    assert answer["data"]["scheduled_at"] == "2030-01-01T00:00:00Z"
    gate.open()
    wait_until(Job.objects.exists)
    found = api.get(f"{JOBS}/{answer['data']['id']}").json()["data"]
    assert (found["type"], found["priority"], found["scheduled_at"]) == ("remember", 1.5, "2030-01-01T00:00:00Z")


def test_a_host_with_atomic_requests_spools_all_the_same(gate, kind, api):
    """Making a job is one statement: it needs no transaction that the database would have to open first."""
    from django.db import connections

    connections["default"].settings_dict["ATOMIC_REQUESTS"] = True
    connections.settings["default"]["ATOMIC_REQUESTS"] = True
    try:
        gate.shut()
        assert post(api).status_code == 202
    finally:
        connections["default"].settings_dict["ATOMIC_REQUESTS"] = False
        connections.settings["default"]["ATOMIC_REQUESTS"] = False


def test_what_cannot_be_spooled_is_refused(gate, kind, api, settings):
    """A bad payload with 422; a job that waits for others, has metadata or is beyond the limit with 503."""
    settings.DILAMME = {**settings.DILAMME, "SPOOL_LIMIT": 300}
    gate.shut()
    assert post(api, "many").status_code == 422
    assert post(api, dependency_ids=[str(uuid.uuid4())]).status_code == 503
    assert post(api, metadata={"tenant": "acme"}).status_code == 503
    assert [post(api).status_code for _ in range(2)] == [202, 503]
    assert "full: it keeps 1 records of" in post(api).json()["message"]


def test_a_spool_that_cannot_be_written_tells_the_caller_nothing_of_the_inside(gate, kind, api, spool):
    """The path is in the log, not in the answer."""
    spool.write_text("a file")
    gate.shut()
    response = post(api)
    assert response.status_code == 503
    assert str(spool) not in response.content.decode()
    assert response.json()["message"].startswith("The database is away, and the job could not be kept here either.")


def test_health_stays_good_while_jobs_are_accepted(gate, kind, api, settings):
    """A load balancer keeps a process that spools, and drops one whose spool is full."""
    settings.DILAMME = {**settings.DILAMME, "SPOOL_LIMIT": 250}
    stranger = Client()
    assert stranger.get("/health").json()["data"]["spool"] == {"jobs": 0, "size": 0, "limit": 250}
    gate.shut()
    response = stranger.get("/health")
    assert (response.status_code, response.json()["data"]["status"]) == (200, "spooling")
    assert post(api).status_code == 202
    settings.DILAMME = {**settings.DILAMME, "SPOOL_LIMIT": 100}
    response = stranger.get("/health")
    assert (response.status_code, response.json()["data"]["status"]) == (503, "database away")
    assert response.json()["data"]["spool"]["jobs"] == 1


def test_metrics_are_prometheus_text_and_need_a_key(gate, kind, api):
    """The gauges move with the spool; whoever has no key sees nothing."""

    def read() -> dict[str, float]:
        response = api.get("/metrics")
        assert response.headers["Content-Type"].startswith("text/plain; version=")
        lines = [line for line in response.content.decode().splitlines() if not line.startswith("#")]
        return {name: float(value) for name, value in map(str.split, lines)}

    before = read()
    assert (before["dilamme_database_up"], before["dilamme_spool_jobs"], before["dilamme_workers"]) == (1, 0, 0)
    gate.shut()
    post(api)
    during = read()
    assert (during["dilamme_database_up"], during["dilamme_spool_jobs"]) == (0, 1)
    assert during["dilamme_spool_bytes"] > 100
    assert "dilamme_workers" not in during
    gate.open()
    wait_until(lambda: not forwarder.is_diverting)
    after = read()
    assert after["dilamme_spool_kept_total"] == before["dilamme_spool_kept_total"] + 1
    assert after["dilamme_spool_forwarded_total"] == before["dilamme_spool_forwarded_total"] + 1
    assert Client().get("/metrics").status_code == 401
    assert Client().get("/metrics").json()["message"] == "Send a valid key in the header X-API-Key."


def test_the_admin_tells_operators_of_refused_jobs(gate, kind):
    """Above the list of jobs, with where they are."""
    job = SpooledJob(uuid.uuid4(), "remember", "default", 99.0, "{}", 3, timezone.now(), None)
    forwarder.keep({job.id: job.pack()})
    wait_until(lambda: not forwarder.is_diverting)
    client = Client()
    client.force_login(make_user("operator", "view_job"))
    page = client.get("/admin/dilamme/job/").content.decode()
    assert "spooled jobs were refused by the database" in page
    assert "refused.jsonl" in page
