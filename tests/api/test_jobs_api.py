"""The routes for jobs: making them, finding them, and acting on them."""

import uuid
from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client

from jobs import enqueue, lifecycle
from jobs.claims import Ended
from jobs.lifecycle import Appetite, exchange
from jobs.models import Job, JobEvent
from jobs.outcomes import Failed
from jobs.queries import DjangoSession
from tests.api.answers import JOBS, problems, read
from tests.support import status_of

pytestmark = pytest.mark.django_db

JSON = "application/json"


def fail(job: Job, error: str = "boom", traceback: str = "") -> uuid.UUID:
    """Run a job's only attempt and let it fail; returns the worker's id."""
    worker = uuid.uuid4()
    claims = exchange(DjangoSession(), Appetite(worker), [], 10).claimed.claims
    (claim,) = [claim for claim in claims if claim.id == job.pk]
    exchange(DjangoSession(), Appetite(worker), [Ended(claim, Failed(error, traceback), 0.5)], 0)
    return worker


# Making


def test_a_new_job_is_answered_whole(api: Client) -> None:
    """The client learns everything that was decided, and need not ask again."""
    body = read(api.post(JOBS, {"type": "free", "payload": {"a": [1, None]}}, content_type=JSON), 201)
    job = Job.objects.get()
    at = job.created_at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    assert (body["message"], body["errors"], body["meta"]) == ("The job was made.", [], {})
    assert body["data"] == {
        "id": str(job.pk),
        "type": "free",
        "queue": "default",
        "status": "pending",
        "phase": "ready",
        "priority": 2.0,
        "scheduled_at": at,
        "run_at": at,
        "created_at": at,
        "started_at": None,
        "finished_at": None,
        "attempt": 0,
        "attempts_used": 0,
        "max_attempts": 3,
        "unmet_dependencies": 0,
        "last_error": "",
        "cancel_requested": False,
        "cancelled_because": None,
        "expires_at": None,
        "timeout": None,
        "unique_key": None,
        "workflow_id": None,
        "step": "",
        "concurrency_key": None,
        "series_id": None,
        "progress": None,
        "payload": {"a": [1, None]},
        "metadata": None,
        "result": None,
        "dependency_ids": [],
        "events": [],
        "created": True,
    }


def test_a_new_job_is_one_statement(api: Client, django_assert_num_queries: Any) -> None:
    """Once it is stored nothing can fail any more: a client told to try again has made no job."""
    with django_assert_num_queries(1):
        read(api.post(JOBS, {"type": "free"}, content_type=JSON), 201)


def test_every_option_is_taken_over(api: Client) -> None:
    """What the client asks for is what is stored."""
    parents = sorted(str(enqueue("free").pk) for _ in range(2))
    new = {
        "type": "free",
        "payload": {},
        "queue": "mail",
        "priority": 1.5,
        "scheduled_at": "2040-01-02T03:04:05+02:00",
        "dependency_ids": parents,
        "on_failure": "run",
        "max_attempts": 7,
        "timeout": 2.5,
        "expires_at": "2041-01-02T03:04:05Z",
        "unique_key": "order 7",
        "unique_scope": "pending",
        "on_conflict": "raise",
        "workflow_id": str(uuid.UUID(int=7)),
        "metadata": {"tenant": "acme"},
    }
    data = read(api.post(JOBS, new, content_type=JSON), 201)["data"]
    assert (data["queue"], data["priority"], data["max_attempts"]) == ("mail", 1.5, 7)
    assert data["scheduled_at"] == data["run_at"] == "2040-01-02T01:04:05Z"
    assert (data["dependency_ids"], data["unmet_dependencies"], data["phase"]) == (parents, 2, "blocked")
    assert (data["timeout"], data["expires_at"], data["unique_key"]) == (2.5, "2041-01-02T03:04:05Z", "order 7")
    assert (data["workflow_id"], data["step"], data["metadata"]) == (new["workflow_id"], "", {"tenant": "acme"})
    job = Job.objects.get(pk=data["id"])
    assert not job.unique_while_running
    assert (job.queue, job.run_at) == ("mail", datetime(2040, 1, 2, 1, 4, 5, tzinfo=UTC))
    assert set(job.parent_edges.values_list("on_failure", flat=True)) == {"run"}


def test_what_is_left_out_or_null_has_its_default(api: Client) -> None:
    """A null is as good as nothing, but for the payload."""
    empty = {"type": "strict", "payload": {"number": 5}, "queue": None, "priority": None, "scheduled_at": None}
    data = read(api.post(JOBS, {**empty, "max_attempts": None}, content_type=JSON), 201)["data"]
    assert (data["queue"], data["priority"], data["max_attempts"]) == ("default", 2.0, 1)


UNIQUE = {"type": "free", "payload": {"order": 7, "at": 1}, "unique_key": "order 7"}


def test_a_unique_key_that_is_held_shows_its_holder(api: Client) -> None:
    """Nothing is made, and 200 instead of 201 says so, with the job as it stands and its history."""
    first = read(api.post(JOBS, UNIQUE, content_type=JSON), 201)["data"]
    body = read(api.post(JOBS, {**UNIQUE, "payload": {"at": 2}}, content_type=JSON), 200)
    assert body["message"] == "This job holds the unique key."
    assert body["data"] == {**first, "created": False}
    assert Job.objects.count() == 1


def test_a_unique_key_may_be_made_from_the_payload(api: Client) -> None:
    """Jobs of one type whose named values are equal are one; others are others."""
    new = {"type": "free", "payload": {"order": 7, "at": 1}, "unique": ["order"]}
    first = read(api.post(JOBS, new, content_type=JSON), 201)["data"]
    again = read(api.post(JOBS, {**new, "payload": {"order": 7, "at": 2}}, content_type=JSON), 200)["data"]
    assert (again["id"], again["unique_key"]) == (first["id"], first["unique_key"])
    other = read(api.post(JOBS, {**new, "payload": {"order": 8}}, content_type=JSON), 201)["data"]
    assert other["unique_key"] != first["unique_key"]


def test_a_unique_key_may_replace_what_its_holder_does(api: Client) -> None:
    """The answer shows the other job with the new payload and time."""
    first = read(api.post(JOBS, UNIQUE, content_type=JSON), 201)["data"]
    new = {**UNIQUE, "on_conflict": "replace", "payload": {"at": 2}, "scheduled_at": "2040-01-01T00:00:00Z"}
    data = read(api.post(JOBS, new, content_type=JSON), 200)["data"]
    assert (data["id"], data["created"], data["payload"]) == (first["id"], False, {"at": 2})
    assert data["run_at"] == "2040-01-01T00:00:00Z"


def test_a_unique_key_may_refuse_a_second_job(api: Client) -> None:
    """409 names the job that holds the key, in the text and where a program can read it."""
    holder = read(api.post(JOBS, UNIQUE, content_type=JSON), 201)["data"]["id"]
    body = read(api.post(JOBS, {**UNIQUE, "on_conflict": "raise"}, content_type=JSON), 409)
    assert body["message"] == f"The unique key 'order 7' is held by the job {holder}."
    assert body["meta"] == {"job_id": holder}
    assert Job.objects.count() == 1


def test_an_expiry_that_has_passed_is_taken(api: Client) -> None:
    """Whether a job comes too late is for the workers to find out, by the clock of the database."""
    new = {"type": "free", "expires_at": "2001-01-01T00:00:00Z"}
    assert read(api.post(JOBS, new, content_type=JSON), 201)["data"]["expires_at"] == "2001-01-01T00:00:00Z"


def test_a_payload_that_does_not_fit_is_refused(api: Client) -> None:
    """Every field that is wrong is named, before anything is stored."""
    new = {"type": "strict", "payload": {"number": "many", "other": 1}}
    ((field, message),) = problems(api.post(JOBS, new, content_type=JSON))
    assert field == "payload"
    assert message == (
        "The payload does not fit strict: number: Input should be a valid integer, unable to parse string as an "
        "integer; other: Extra inputs are not permitted."
    )
    assert not Job.objects.exists()


def test_a_parent_that_has_failed_is_refused(api: Client) -> None:
    """The client is told which parent, and what to do."""
    parent = enqueue("strict", {"number": 1})
    fail(parent)
    new = {"type": "free", "dependency_ids": [str(parent.pk)]}
    ((field, message),) = problems(api.post(JOBS, new, content_type=JSON))
    assert field == "dependency_ids"
    assert message == (
        f"The job {parent.pk} has the status failed, so a job that depends on it would never run: retry it first, "
        f"or use on_failure='run'."
    )


# One job


def test_a_job_is_shown_with_its_history(api: Client) -> None:
    """Attempts, errors and interventions are told in order, oldest first."""
    job = enqueue("strict", {"number": 1})
    worker = fail(job, "boom", "Traceback ...")
    lifecycle.retry([job.pk], actor="somebody")
    data = read(api.get(f"{JOBS}/{job.pk}"), 200)["data"]
    assert (data["status"], data["payload"], data["last_error"]) == ("pending", {"number": 1}, "boom")
    assert (data["attempt"], data["attempts_used"]) == (1, 0)
    dead, retried = data["events"]
    assert (dead["kind"], dead["error"], dead["traceback"]) == ("dead", "boom", "Traceback ...")
    assert (dead["attempt"], dead["worker_id"], dead["duration"], dead["actor"]) == (1, str(worker), 0.5, "")
    assert (retried["kind"], retried["actor"], retried["worker_id"]) == ("retried", "somebody", None)


def test_a_job_that_does_not_exist_is_404(api: Client) -> None:
    """An id that nobody has is told back."""
    id_ = uuid.uuid4()
    for answer in (api.get(f"{JOBS}/{id_}"), api.post(f"{JOBS}/{id_}/cancel"), api.post(f"{JOBS}/{id_}/retry")):
        assert read(answer, 404)["message"] == f"There is no job {id_}."


# Lists


def ids_of(body: dict[str, Any]) -> list[str]:
    """Return the ids in a list, in order."""
    return [job["id"] for job in body["data"]]


def test_lists_are_newest_first_and_without_large_values(api: Client) -> None:
    """A list of jobs stays small however large their payloads are."""
    made = [str(enqueue("free", {"a": "x" * 10_000}).pk) for _ in range(3)]
    response = api.get(JOBS)
    body = read(response, 200)
    assert ids_of(body) == made[::-1]
    assert body["message"] == "3 jobs."
    assert body["meta"] == {"limit": 50, "next_before": None}
    assert not {"payload", "result"} & set(body["data"][0])
    assert len(response.content) < 5000


def test_a_list_is_one_query(api: Client, django_assert_num_queries: Any) -> None:
    """However long it is."""
    for _ in range(5):
        enqueue("free")
    with django_assert_num_queries(1):
        read(api.get(JOBS), 200)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("status=pending", ["plain", "mail"]),
        ("status=failed", ["dead"]),
        ("status=completed", []),
        ("type=free", ["plain", "mail"]),
        ("type=nobody_knows_it", []),
        ("queue=mail", ["mail"]),
        ("queue=default&status=pending", ["plain"]),
        ("queue=mail&status=failed", []),
        ("unknown=parameter", ["dead", "plain", "mail"]),
    ],
)
def test_lists_are_filtered(api: Client, query: str, found: list[str]) -> None:
    """Filters are combined; a parameter that means nothing changes nothing."""
    dead = enqueue("strict", {"number": 1})
    fail(dead)
    made = {"dead": dead, "plain": enqueue("free"), "mail": enqueue("free", queue="mail")}
    body = read(api.get(f"{JOBS}?{query}"), 200)
    assert sorted(ids_of(body)) == sorted(str(made[name].pk) for name in found)


def test_pages_lead_to_the_end(api: Client) -> None:
    """Following next_before shows every job once, also those that share a millisecond, and then stops."""
    made = [str(enqueue("free").pk) for _ in range(11)]
    seen: list[str] = []
    address: str | None = f"{JOBS}?limit=3&type=free"
    pages = 0
    while address:
        body = read(api.get(address), 200)
        seen += ids_of(body)
        pages += 1
        before = body["meta"]["next_before"]
        address = before and f"{JOBS}?limit=3&type=free&before={before}"
        enqueue("free", {"while": "somebody pages"})
    assert seen == made[::-1]
    assert pages == 4


@pytest.mark.parametrize("count", [2, 3])
def test_a_page_that_is_just_full_is_the_last_one(api: Client, count: int) -> None:
    """A client is not sent to an empty page."""
    made = [enqueue("free").pk for _ in range(count)]
    body = read(api.get(f"{JOBS}?limit=2"), 200)
    assert body["meta"] == {"limit": 2, "next_before": str(made[1]) if count == 3 else None}


# Actions


def test_cancel_ends_a_pending_job(api: Client) -> None:
    """The answer shows the job as it is now, with who did it."""
    job = enqueue("free")
    data = read(api.post(f"{JOBS}/{job.pk}/cancel"), 200)["data"]
    assert (data["status"], data["phase"], data["cancel_requested"]) == ("cancelled", "cancelled", True)
    assert [(event["kind"], event["actor"]) for event in data["events"]] == [("cancelled", "api:tests")]
    assert status_of(job.pk) == "cancelled"


def test_cancel_asks_a_running_job_to_stop(api: Client) -> None:
    """Its worker ends it; until then it is shown as cancelling."""
    job = enqueue("free")
    exchange(DjangoSession(), Appetite(uuid.uuid4()), [], 1)
    data = read(api.post(f"{JOBS}/{job.pk}/cancel"), 200)["data"]
    assert (data["status"], data["phase"]) == ("processing", "cancelling")
    assert [event["kind"] for event in data["events"]] == ["cancel_requested"]


def test_retry_gives_a_dead_letter_a_new_budget(api: Client) -> None:
    """It is pending again at once, and its history goes on."""
    job = enqueue("strict", {"number": 1})
    fail(job)
    data = read(api.post(f"{JOBS}/{job.pk}/retry"), 200)["data"]
    assert (data["status"], data["attempts_used"], data["finished_at"]) == ("pending", 0, None)
    assert [(event["kind"], event["actor"]) for event in data["events"]] == [("dead", ""), ("retried", "api:tests")]


def family() -> tuple[Job, Job]:
    """Make a job that has failed, and one that was cancelled because of it."""
    parent = enqueue("strict", {"number": 1})
    child = enqueue("free", depends_on=(parent.pk,))
    fail(parent)
    lifecycle.settle_rest(DjangoSession())
    assert status_of(child.pk) == "cancelled"
    return parent, child


def test_retry_revives_what_was_cancelled_with_it(api: Client) -> None:
    """The answer says how many jobs wait again; before, the child named the job because of which it was cancelled."""
    parent, child = family()
    assert read(api.get(f"{JOBS}/{child.pk}"), 200)["data"]["cancelled_because"] == str(parent.pk)
    assert read(api.post(f"{JOBS}/{parent.pk}/retry"), 200)["meta"] == {"also": 1}
    data = read(api.get(f"{JOBS}/{child.pk}"), 200)["data"]
    assert (data["phase"], data["cancelled_because"]) == ("blocked", None)


@pytest.mark.parametrize(("downstream", "also"), [("true", 1), ("false", 0)])
def test_retry_may_leave_the_dependants_alone(api: Client, downstream: str, also: int) -> None:
    """Without downstream only the job itself runs again."""
    parent, child = family()
    assert read(api.post(f"{JOBS}/{parent.pk}/retry?downstream={downstream}"), 200)["meta"] == {"also": also}
    assert status_of(child.pk) == ("pending" if also else "cancelled")


@pytest.mark.parametrize("downstream", ["x", "", "2", "%00"])
def test_a_downstream_that_is_neither_is_422(api: Client, downstream: str) -> None:
    """Nothing is guessed, and nothing is retried."""
    parent, _ = family()
    ((field, message),) = problems(api.post(f"{JOBS}/{parent.pk}/retry?downstream={downstream}"))
    assert field == "downstream"
    assert message.startswith("Input should be a valid boolean")
    assert status_of(parent.pk) == "failed"


def test_cancel_says_how_many_went_with_it(api: Client) -> None:
    """Children and their children are cancelled with a job, and counted."""
    parent = enqueue("free")
    child = enqueue("free", depends_on=(parent.pk,))
    for _ in range(2):
        enqueue("free", depends_on=(child.pk,))
    assert read(api.post(f"{JOBS}/{parent.pk}/cancel"), 200)["meta"] == {"also": 3}
    assert set(Job.objects.values_list("status", flat=True)) == {"cancelled"}


@pytest.mark.parametrize(
    ("status", "action", "message"),
    [
        ("pending", "retry", "It is pending; only failed and cancelled jobs can be retried."),
        ("completed", "retry", "It has completed; enqueue a new job to run it again."),
        ("completed", "cancel", "It is too late to cancel this job: it has completed."),
        ("failed", "cancel", "It is too late to cancel this job: it has failed."),
        ("cancelled", "cancel", "It is cancelled already."),
    ],
)
def test_what_is_too_late_is_409(api: Client, status: str, action: str, message: str) -> None:
    """A refused action says why, and changes nothing."""
    job = enqueue("free")
    finished = None if status == "pending" else job.created_at
    Job.objects.filter(pk=job.pk).update(status=status, finished_at=finished)
    assert read(api.post(f"{JOBS}/{job.pk}/{action}"), 409)["message"] == message
    assert status_of(job.pk) == status
    assert not JobEvent.objects.exists()


def test_metadata_comes_back_with_the_job(api: Client) -> None:
    """From the answer that makes it, and whoever looks at it later; a list of jobs leaves it out, like the payload."""
    given = {"tenant": "acme", "trace": {"id": "4bf92f", "parts": [1, None, "\u00e9<b>"]}}
    made = read(api.post(JOBS, {"type": "free", "metadata": given}, content_type=JSON), 201)["data"]
    assert made["metadata"] == read(api.get(f"{JOBS}/{made['id']}"), 200)["data"]["metadata"] == given
    assert "metadata" not in read(api.get(JOBS), 200)["data"][0]
    cancelled = read(api.post(f"{JOBS}/{made['id']}/cancel"), 200)["data"]
    retried = read(api.post(f"{JOBS}/{made['id']}/retry"), 200)["data"]
    assert cancelled["metadata"] == retried["metadata"] == given


def test_a_job_that_runs_again_and_again_has_its_metadata(api: Client) -> None:
    """With an interval as without."""
    new = {"type": "free", "interval": "1h", "metadata": {"tenant": "acme"}}
    assert read(api.post(JOBS, new, content_type=JSON), 201)["data"]["metadata"] == {"tenant": "acme"}


def test_a_job_has_a_concurrency_key_and_a_step(api: Client) -> None:
    """They are stored, and jobs of a workflow are found by it."""
    workflow = str(uuid.uuid4())
    body = {"type": "free", "workflow_id": workflow, "step": "extra", "concurrency_key": "k"}
    made = read(api.post(JOBS, body, content_type=JSON), 201)["data"]
    assert (made["step"], made["concurrency_key"]) == ("extra", "k")
    enqueue("free")
    assert [job["id"] for job in read(api.get(f"{JOBS}?workflow_id={workflow}"), 200)["data"]] == [made["id"]]
