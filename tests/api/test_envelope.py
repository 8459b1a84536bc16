"""One shape for every answer: also where no route is, where the database is away, and where our own code fails."""

import json
import logging
import subprocess
import sys
import uuid
from typing import Annotated, Any

import pydantic
import pytest
from django.db import connection, transaction
from django.test import Client

from jobs import lifecycle
from jobs.lifecycle import Presence
from jobs.limits import TIMEOUT_LIMIT
from jobs.models import Worker
from jobs.queries import DjangoSession
from tests.api.answers import JOBS, WORKFLOWS, read
from tests.support import ROOT, handler, process_environment

pytestmark = pytest.mark.django_db

ID = uuid.UUID(int=5)
SERIES, QUEUES = "/api/v1/series", "/api/v1/queues"
NOWHERE = "There is nothing at this address."


@pytest.mark.parametrize("method", ["get", "post", "put", "delete"])
@pytest.mark.parametrize("address", ["/api/v1/", "/api/v1/nope", "/api/v1/jobs/", "/api/v1/jobs/1/2/3", "/api/v1/%00"])
def test_an_address_that_is_nothing_is_404(stranger: Client, method: str, address: str) -> None:
    """Whatever is sent to it, and with or without a key: no page in HTML, and no complaint about CSRF."""
    assert read(getattr(stranger, method)(address), 404)["message"] == NOWHERE


@pytest.mark.parametrize(
    ("method", "address", "allowed"),
    [
        ("delete", JOBS, {"GET", "POST"}),
        ("put", JOBS, {"GET", "POST"}),
        ("post", f"{JOBS}/{ID}", {"GET", "PATCH"}),
        ("get", f"{JOBS}/{ID}/cancel", {"POST"}),
        ("get", WORKFLOWS, {"POST"}),
        ("delete", f"{WORKFLOWS}/{ID}", {"GET"}),
        ("put", SERIES, {"GET", "POST"}),
        ("post", f"{SERIES}/nightly", {"GET", "PATCH", "DELETE"}),
        ("get", f"{SERIES}/nightly/run", {"POST"}),
        ("post", QUEUES, {"GET"}),
        ("get", f"{QUEUES}/mail", {"PUT"}),
        ("post", "/api/v1/types/paused", {"GET"}),
        ("post", "/health", {"GET", "HEAD"}),
    ],
)
def test_a_method_that_is_none_is_405(api: Client, method: str, address: str, allowed: set[str]) -> None:
    """The answer says which methods there are, in its text and in the header that is meant for it."""
    response = getattr(api, method)(address)
    message = read(response, 405)["message"]
    assert set(response.headers["Allow"].split(", ")) == allowed
    assert message == f"Use {response.headers['Allow']} here."


def raise_unforeseen(value: str) -> str:
    """Fail as code does that nobody has tried."""
    raise RuntimeError(f"secret {value}")


def test_an_unforeseen_error_is_logged_and_hides_its_inside(api: Client, caplog: pytest.LogCaptureFixture) -> None:
    """The caller learns that it is not his fault; the log has the traceback."""

    def careless(word: Annotated[str, pydantic.AfterValidator(raise_unforeseen)]) -> None: ...

    with handler(careless, name="careless"), caplog.at_level(logging.ERROR, "dilamme.api"):
        response = api.post(JOBS, {"type": "careless", "payload": {"word": "x"}}, content_type="application/json")
    assert read(response, 500)["message"] == "Something went wrong here; it has been logged."
    assert b"secret" not in response.content
    (record,) = [record for record in caplog.records if record.name == "dilamme.api"]
    assert record.exc_info is not None
    assert str(record.exc_info[1]) == "secret x"


@pytest.mark.parametrize("address", [JOBS, f"{JOBS}/{ID}", "/health"])
def test_a_database_that_was_not_migrated_tells_nothing_of_itself(api: Client, address: str) -> None:
    """An error of SQL is one of ours: a plain 500, without the statement or the names of tables."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("alter table dilamme_job rename to away; alter table dilamme_worker rename to gone")
        response = api.get(address)
        transaction.set_rollback(True)
    read(response, 500)
    assert b"relation" not in response.content
    assert b"dilamme_" not in response.content


# Without a database

ASK = """
import json, sys
import django
django.setup()
from django.test import Client
api = Client(enforce_csrf_checks=True, headers={"X-API-Key": "a-key-that-only-the-tests-know"})
answers = []
for method, address, body in json.load(sys.stdin):
    response = api.generic(method, address, json.dumps(body), content_type="application/json")
    answers.append([response.status_code, json.loads(response.content)])
print(json.dumps(answers))
"""


@pytest.fixture(scope="module")
def without_database() -> list[list[Any]]:
    """Ask every route in a process whose database is at a port where nothing listens."""
    asked = [
        ("GET", "/health", None),
        ("GET", JOBS, None),
        ("GET", f"{JOBS}/{ID}", None),
        ("POST", JOBS, {"type": "log_processing", "payload": {"text": "x"}}),
        ("POST", f"{JOBS}/{ID}/cancel", None),
        ("POST", f"{JOBS}/{ID}/retry", None),
        ("POST", WORKFLOWS, {"jobs": {"a": {"type": "log_processing", "payload": {"text": "x"}}}}),
        ("GET", f"{WORKFLOWS}/{ID}", None),
        ("POST", f"{WORKFLOWS}/{ID}/cancel", None),
        ("POST", f"{WORKFLOWS}/{ID}/retry", None),
        ("PATCH", f"{JOBS}/{ID}", {"priority": 1}),
        ("GET", f"{JOBS}/{ID}/explain", None),
        ("POST", JOBS, {"type": "log_processing", "payload": {"text": "x"}, "interval": "5m"}),
        ("GET", SERIES, None),
        ("GET", f"{SERIES}/nightly", None),
        ("POST", SERIES, {"name": "s", "type": "log_processing", "payload": {"text": "x"}, "interval": "5m"}),
        ("POST", f"{SERIES}/nightly/run", None),
        ("GET", QUEUES, None),
        ("PUT", f"{QUEUES}/mail", {"concurrency": 1}),
        ("GET", "/api/v1/types/paused", None),
        ("POST", "/api/v1/types/log_processing/pause", None),
    ]
    environment = process_environment(DATABASE_URL="postgres://nobody:secret@127.0.0.1:9/nothing", ALLOWED_HOSTS="*")
    run = subprocess.run(
        [sys.executable, "-c", ASK],
        cwd=ROOT,
        env=environment,
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    answers: list[list[Any]] = json.loads(run.stdout)
    return answers


def test_health_is_503_without_a_database(without_database: list[list[Any]]) -> None:
    """A load balancer takes this process out."""
    data = {"status": "database away", "workers": None, "listening": None, "spool": None}
    assert without_database[0] == [
        503,
        {"message": "The database is away.", "data": data, "errors": [], "meta": {}},
    ]


def test_every_route_is_503_without_a_database(without_database: list[list[Any]]) -> None:
    """The client may try again; where the database would be, and as whom, is nobody's business."""
    message = "The database is away. Try again in a moment."
    assert without_database[1:] == [[503, {"message": message, "data": None, "errors": [], "meta": {}}]] * 20


# Health


def test_health_counts_the_workers_that_are_alive(stranger: Client) -> None:
    """Those whose lease stands, and those of them that hear notifications; no key is needed."""
    session = DjangoSession()
    for listening in (True, False):
        lifecycle.beat(session, Presence(uuid.uuid4(), "w", 1, None, [], listening=listening))
    lifecycle.beat(session, Presence(lost := uuid.uuid4(), "lost", 1, None, [], listening=True))
    Worker.objects.filter(pk=lost).update(lease_expires_at="2000-01-01T00:00Z")
    body = read(stranger.get("/health"), 200)
    assert body["data"] == {"status": "ok", "workers": 2, "listening": 1, "spool": None}
    assert stranger.head("/health").status_code == 200


# Documentation


def test_the_openapi_document_describes_every_route(stranger: Client) -> None:
    """Paths, the key, and the envelope of every answer stand in it."""
    document = json.loads(stranger.get("/api/v1/openapi.json").content)
    operations = {
        (method.upper(), path): operation
        for path, item in document["paths"].items()
        for method, operation in item.items()
    }
    assert set(operations) == {
        ("POST", "/api/v1/jobs"),
        ("GET", "/api/v1/jobs"),
        ("GET", "/api/v1/jobs/{job_id}"),
        ("POST", "/api/v1/jobs/{job_id}/cancel"),
        ("POST", "/api/v1/jobs/{job_id}/retry"),
        ("PATCH", "/api/v1/jobs/{job_id}"),
        ("GET", "/api/v1/jobs/{job_id}/explain"),
        ("GET", "/api/v1/series"),
        ("POST", "/api/v1/series"),
        ("GET", "/api/v1/series/{name}"),
        ("PATCH", "/api/v1/series/{name}"),
        ("DELETE", "/api/v1/series/{name}"),
        ("POST", "/api/v1/series/{name}/pause"),
        ("POST", "/api/v1/series/{name}/resume"),
        ("POST", "/api/v1/series/{name}/run"),
        ("GET", "/api/v1/queues"),
        ("PUT", "/api/v1/queues/{name}"),
        ("POST", "/api/v1/queues/{name}/pause"),
        ("POST", "/api/v1/queues/{name}/resume"),
        ("GET", "/api/v1/types/paused"),
        ("POST", "/api/v1/types/{name}/pause"),
        ("POST", "/api/v1/types/{name}/resume"),
        ("POST", "/api/v1/workflows"),
        ("GET", "/api/v1/workflows/{workflow_id}"),
        ("POST", "/api/v1/workflows/{workflow_id}/cancel"),
        ("POST", "/api/v1/workflows/{workflow_id}/retry"),
        ("POST", "/api/v1/benchmark/run"),
    }
    scheme = document["components"]["securitySchemes"]["ApiKey"]
    assert (scheme["type"], scheme["in"], scheme["name"]) == ("apiKey", "header", "X-API-Key")
    for operation in operations.values():
        assert operation["security"] == [{"ApiKey": []}]
        for status in ("400", "401", "404", "409", "413", "422", "503"):
            assert "Envelope" in str(operation["responses"][status]["content"]["application/json"]["schema"])


def test_the_openapi_document_shows_the_bounds(stranger: Client) -> None:
    """A client can know what will be refused without trying."""
    document = json.loads(stranger.get("/api/v1/openapi.json").content)
    fields = document["components"]["schemas"]["NewJobIn"]["properties"]
    priority, attempts, queue = (fields[name]["anyOf"][0] for name in ("priority", "max_attempts", "queue"))
    assert (priority["minimum"], priority["maximum"]) == (1, 3)
    assert (attempts["minimum"], attempts["maximum"]) == (1, 1000)
    assert (queue["maxLength"], queue["pattern"]) == (100, "^[A-Za-z0-9_][A-Za-z0-9_.:-]*$")
    assert fields["dependency_ids"]["maxItems"] == 10_000
    for path in (JOBS, SERIES, QUEUES, "/api/v1/types/paused"):
        limit = next(p for p in document["paths"][path]["get"]["parameters"] if p["name"] == "limit")["schema"]
        assert (limit["minimum"], limit["maximum"], limit["default"]) == (1, 200, 50)
    timeout, expiry, key = (fields[name]["anyOf"][0] for name in ("timeout", "expires_at", "unique_key"))
    assert (timeout["exclusiveMinimum"], timeout["maximum"]) == (0, TIMEOUT_LIMIT)
    assert (expiry["format"], key["minLength"], key["maxLength"]) == ("date-time", 1, 200)
    steps = document["components"]["schemas"]["NewWorkflowIn"]["properties"]["jobs"]
    assert (steps["minProperties"], steps["maxProperties"]) == (1, 10_000)
    for path in (JOBS, WORKFLOWS):
        (header,) = document["paths"][path]["post"]["parameters"]
        assert (header["name"], header["in"], header["required"]) == ("Idempotency-Key", "header", False)


def test_the_documentation_loads_without_a_foreign_host(stranger: Client) -> None:
    """Its scripts come from this server: it works where the internet does not, and no other site sees who reads it."""
    page = stranger.get("/api/v1/docs")
    assert page.status_code == 200
    assert b"/api/v1/openapi.json" in page.content
    assert b'src="http' not in page.content
    assert b'href="http' not in page.content
