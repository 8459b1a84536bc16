"""The routes for workflows: making whole graphs, seeing how they stand, and acting on all of them."""

import json
import uuid
from typing import Any

import pytest
from django.conf import settings as host
from django.test import Client

from jobs import Step, enqueue, make_workflow
from jobs.api.schemas import NewWorkflowIn
from jobs.claims import Ended
from jobs.lifecycle import Appetite, exchange, settle_rest
from jobs.limits import WORKFLOW_LIMIT
from jobs.models import Job, JobDependency, JobEvent
from jobs.outcomes import Failed
from jobs.queries import DjangoSession
from jobs.workflows import MadeWorkflow
from tests.api.answers import JOBS, WORKFLOWS, problems, read
from tests.support import history_of, status_of

pytestmark = pytest.mark.django_db

JSON = "application/json"
FREE = {"type": "free"}
NOBODY = uuid.UUID(int=5)


def post(api: Client, jobs: Any) -> Any:
    """Ask for a workflow of these jobs."""
    return api.post(WORKFLOWS, {"jobs": jobs}, content_type=JSON)


def made_of(**after: str) -> MadeWorkflow:
    """Make a workflow from the names that each job is after, written in one word."""
    return make_workflow({name: Step("free", {}, tuple(parents)) for name, parents in after.items()})


def end(*jobs: Job, outcome: Any = None) -> None:
    """Run these jobs, the first that are due; they fail for good unless said otherwise. Dependants are told."""
    worker, session = Appetite(uuid.uuid4()), DjangoSession()
    claims = {claim.id: claim for claim in exchange(session, worker, [], len(jobs)).claimed.claims}
    ended = [Ended(claims[job.pk], outcome or Failed("boom", final=True), 0.1) for job in jobs]
    exchange(session, worker, ended, 0)
    settle_rest(session)


# Making


def test_a_workflow_is_made_whole(api: Client) -> None:
    """The answer has the id of each job by its name; who waits for whom is stored, whatever the order was."""
    body = read(post(api, {"report": {**FREE, "after": ["b", "a"]}, "a": FREE, "b": {**FREE, "after": ["a"]}}), 201)
    assert body["message"] == "The workflow was made."
    ids = body["data"]["jobs"]
    jobs = {str(job.pk): job for job in Job.objects.all()}
    assert {jobs[id_].step: id_ for id_ in ids.values()} == ids
    assert {str(job.workflow_id) for job in jobs.values()} == {body["data"]["id"]}
    assert {name: jobs[id_].unmet for name, id_ in ids.items()} == {"report": 2, "a": 0, "b": 1}
    edges = {(str(edge.child_id), str(edge.parent_id)) for edge in JobDependency.objects.all()}
    assert edges == {(ids["report"], ids["a"]), (ids["report"], ids["b"]), (ids["b"], ids["a"])}


def test_every_option_of_a_job_is_taken_over(api: Client) -> None:
    """What the client asks for is what is stored, and a job of a workflow may wait for one outside."""
    outside = enqueue("free")
    options = {
        "payload": {"a": [1]},
        "queue": "mail",
        "priority": 1.5,
        "scheduled_at": "2040-01-02T03:04:05Z",
        "expires_at": "2041-01-02T03:04:05Z",
        "max_attempts": 7,
        "timeout": 2.5,
        "on_failure": "run",
        "metadata": {"tenant": "acme"},
        "dependency_ids": [str(outside.pk)],
    }
    made = read(post(api, {"a": FREE, "b": {**FREE, **options, "after": ["a"]}}), 201)["data"]
    data = read(api.get(f"{JOBS}/{made['jobs']['b']}"), 200)["data"]
    assert data["dependency_ids"] == sorted([str(outside.pk), made["jobs"]["a"]])
    assert {name: data[name] for name in options if name in data and name != "dependency_ids"} == {
        name: value for name, value in options.items() if name not in {"dependency_ids", "on_failure"}
    }
    assert set(JobDependency.objects.values_list("on_failure", flat=True)) == {"run"}
    assert (data["workflow_id"], data["step"]) == (made["id"], "b")


def test_ten_thousand_small_jobs_fit_in_one_request(api: Client) -> None:
    """The most jobs that a workflow may have are less than the server reads of a body, and are answered at once."""
    jobs: dict[str, Any] = {"job_0": FREE}
    for n in range(1, WORKFLOW_LIMIT):
        jobs[f"job_{n}"] = {**FREE, "payload": {"number": n}, "after": [f"job_{n // 2}"]}
    body = json.dumps({"jobs": jobs}).encode()
    assert len(body) < host.DATA_UPLOAD_MAX_MEMORY_SIZE / 2
    made = read(api.post(WORKFLOWS, body, content_type=JSON), 201)["data"]
    assert (len(made["jobs"]), Job.objects.count()) == (WORKFLOW_LIMIT, WORKFLOW_LIMIT)
    found = read(api.get(f"{WORKFLOWS}/{made['id']}?limit=200"), 200)
    assert (found["data"]["total"], len(found["data"]["jobs"])) == (WORKFLOW_LIMIT, 200)


WRONG = [
    ({}, "jobs", "The workflow has no jobs; give it at least one."),
    (
        {f"j{n}": FREE for n in range(WORKFLOW_LIMIT + 1)},
        "jobs",
        "10,001 jobs; at most 10,000 are made in one workflow.",
    ),
    ({"a": {**FREE, "after": ["b"]}}, "jobs", "a is after 'b', which is no job of this workflow; there are a."),
    ({"a": {**FREE, "after": ["a"]}}, "jobs", "The jobs wait for each other in a circle: a -> a."),
    (
        {"a": {**FREE, "after": ["b"]}, "b": {**FREE, "after": ["a"]}},
        "jobs",
        "The jobs wait for each other in a circle: ",
    ),
    ({"two words": FREE}, "jobs", "A job is called 'two words'; use 1 to 100 letters, digits, and . _ : - inside it."),
    ({"": FREE}, "jobs", "A job is called ''; "),
    ({"a\x00": FREE}, "jobs", "A job is called 'a\\x00'; "),
    ({"a": {}}, "jobs.a.type", "Field required"),
    ({"a": {**FREE, "after": "b"}}, "jobs.a.after", "Input should be a valid list"),
    ({"a": {**FREE, "after": [5]}}, "jobs.a.after.0", "Input should be a valid string"),
    ({"a": {**FREE, "priority": 5}}, "jobs.a.priority", "Input should be less than or equal to 3"),
    ({"a": {**FREE, "timeout": 0}}, "jobs.a.timeout", "Input should be greater than 0"),
    ({"a": {**FREE, "unique_key": "k"}}, "jobs.a.unique_key", "Extra inputs are not permitted"),
    ({"a": {**FREE, "workflow_id": str(NOBODY)}}, "jobs.a.workflow_id", "Extra inputs are not permitted"),
    ({"a": {"type": "nobody_knows_it"}}, "jobs.a.type", "a: No handler is registered for the type 'nobody_knows_it'."),
    ({"a": FREE, "b": {"type": "strict"}}, "jobs.b.payload", "b: The payload does not fit strict: number: "),
    ({"a": {**FREE, "metadata": []}}, "jobs.a.metadata", "Input should be a valid dictionary"),
    ({"a": {**FREE, "metadata": {"b": "\x00"}}}, "jobs.a.metadata", "a: metadata.b contains a NUL character"),
    ({"a": {**FREE, "dependency_ids": [str(NOBODY)]}}, "dependency_ids", f"No job has the id {NOBODY}: "),
    ([], "jobs", "Input should be a valid dictionary"),
    (None, "jobs", "Input should be a valid dictionary"),
    ({"a": None}, "jobs.a", "Input should be a valid dictionary or object to extract fields from"),
]


@pytest.mark.parametrize(("jobs", "field", "start"), WRONG, ids=[f"{text[:40]}" for _, _, text in WRONG])
def test_a_graph_that_cannot_be_is_422(api: Client, jobs: Any, field: str, start: str) -> None:
    """The answer names the place and what is wrong there, and no job of it is made."""
    ((found, message),) = problems(post(api, jobs))
    assert found == field
    assert message.startswith(start)
    assert not Job.objects.exists()


def test_a_workflow_has_nothing_but_jobs(api: Client) -> None:
    """What is left out or means nothing is told."""
    assert problems(api.post(WORKFLOWS, {}, content_type=JSON)) == [("jobs", "Field required")]
    ((field, _),) = problems(api.post(WORKFLOWS, {"jobs": {"a": FREE}, "name": "x"}, content_type=JSON))
    assert field == "name"


def test_the_schema_says_what_the_service_checks() -> None:
    """A name and a number of jobs that the documentation allows are those that are accepted."""
    part = NewWorkflowIn.model_json_schema()["properties"]["jobs"]
    assert (part["minProperties"], part["maxProperties"]) == (1, WORKFLOW_LIMIT)
    assert part["propertyNames"] == {"pattern": "^[A-Za-z0-9_][A-Za-z0-9_.:-]*$", "maxLength": 100}


# Seeing


def test_a_workflow_is_shown_with_its_counts_and_its_jobs(api: Client) -> None:
    """All statuses are counted; each job has its name, where it stands, and what it waits for."""
    made = made_of(a="", b="a", c="ab")
    body = read(api.get(f"{WORKFLOWS}/{made.id}"), 200)
    assert body["meta"] == {"limit": 50, "next_after": None}
    data = body["data"]
    assert (data["id"], data["total"]) == (str(made.id), 3)
    assert data["counts"] == {"pending": 3, "processing": 0, "completed": 0, "failed": 0, "cancelled": 0}
    ids = {name: str(job.pk) for name, job in made.jobs.items()}
    shown = {job["step"]: (job["phase"], job["dependency_ids"]) for job in data["jobs"]}
    assert shown == {"a": ("ready", []), "b": ("blocked", [ids["a"]]), "c": ("blocked", [ids["a"], ids["b"]])}
    assert not {"payload", "result"} & set(data["jobs"][0])


def test_a_cancelled_job_names_the_one_because_of_which_it_was(api: Client) -> None:
    """Where a graph has broken can be read from any of its jobs."""
    made = made_of(a="", b="a", c="b")
    end(made.jobs["a"])
    data = read(api.get(f"{WORKFLOWS}/{made.id}"), 200)["data"]
    assert data["counts"] == {"pending": 0, "processing": 0, "completed": 0, "failed": 1, "cancelled": 2}
    root = str(made.jobs["a"].pk)
    assert [job["cancelled_because"] for job in data["jobs"]] == [None, root, root]


def test_the_pages_of_a_workflow_lead_to_its_end(api: Client) -> None:
    """Following next_after shows every job once, parents first, and the counts are those of the whole."""
    made = make_workflow({f"j{n}": Step("free", {}, (f"j{n - 1}",) if n else ()) for n in range(7)})
    enqueue("free")
    address: str | None = f"{WORKFLOWS}/{made.id}?limit=3"
    seen: list[str] = []
    pages = 0
    while address:
        body = read(api.get(address), 200)
        assert body["data"]["total"] == 7
        seen += [job["step"] for job in body["data"]["jobs"]]
        pages += 1
        after = body["meta"]["next_after"]
        address = after and f"{WORKFLOWS}/{made.id}?limit=3&after={after}"
    assert (seen, pages) == ([f"j{n}" for n in range(7)], 3)


def test_a_page_is_three_queries(api: Client, django_assert_num_queries: Any) -> None:
    """Counts, jobs and edges, however large the workflow is."""
    made = made_of(a="", b="a", c="ab", d="abc")
    with django_assert_num_queries(3):
        read(api.get(f"{WORKFLOWS}/{made.id}"), 200)


@pytest.mark.parametrize(("method", "rest"), [("get", ""), ("post", "/cancel"), ("post", "/retry")])
def test_a_workflow_that_does_not_exist_is_404(api: Client, method: str, rest: str) -> None:
    """An id that nobody has is told back, also when it is that of a job."""
    for id_ in (NOBODY, enqueue("free").pk):
        answer = getattr(api, method)(f"{WORKFLOWS}/{id_}{rest}")
        assert read(answer, 404)["message"] == f"There is no workflow {id_}."


@pytest.mark.parametrize(("method", "rest"), [("get", ""), ("post", "/cancel"), ("post", "/retry")])
@pytest.mark.parametrize("id_", ["x", "5", "%00", "x" * 5000])
def test_an_id_that_is_none_is_422(api: Client, method: str, rest: str, id_: str) -> None:
    """It cannot be the id of any workflow, so that nothing is looked up."""
    assert problems(getattr(api, method)(f"{WORKFLOWS}/{id_}{rest}"))[0][0] == "workflow_id"


@pytest.mark.parametrize("query", ["limit=0", "limit=201", "limit=x", "after=x", "after="])
def test_a_query_out_of_bounds_is_422(api: Client, query: str) -> None:
    """The parameter is named."""
    assert problems(api.get(f"{WORKFLOWS}/{made_of(a='').id}?{query}"))[0][0] == query.split("=", maxsplit=1)[0]


def test_a_job_may_join_a_workflow(api: Client) -> None:
    """A job that was made with the id of a workflow is one of its jobs."""
    made = made_of(a="")
    new = {**FREE, "workflow_id": str(made.id), "dependency_ids": [str(made.jobs["a"].pk)]}
    job = read(api.post(JOBS, new, content_type=JSON), 201)["data"]
    data = read(api.get(f"{WORKFLOWS}/{made.id}"), 200)["data"]
    assert [shown["id"] for shown in data["jobs"]] == [str(made.jobs["a"].pk), job["id"]]


# Acting


def test_cancel_ends_all_that_has_not_ended(api: Client) -> None:
    """Waiting jobs are cancelled and running ones asked to stop; what has ended stays, and others are not touched."""
    made, other = made_of(a="", b="", c="b", d="c"), enqueue("free")
    end(made.jobs["a"])
    exchange(DjangoSession(), Appetite(uuid.uuid4()), [], 1)
    body = read(api.post(f"{WORKFLOWS}/{made.id}/cancel"), 200)
    assert body["message"] == "Cancelled, or asked to stop: 3 jobs."
    assert (body["meta"]["changed"] + body["meta"]["also"], body["meta"]["refused"]) == (3, 0)
    assert body["data"]["counts"] == {"pending": 0, "processing": 1, "completed": 0, "failed": 1, "cancelled": 2}
    assert history_of(made.jobs["b"].pk) == ["cancel_requested"]
    assert status_of(other.pk) == "pending"
    assert set(JobEvent.objects.filter(kind="cancelled").values_list("actor", flat=True)) == {"api:tests"}


def test_cancel_counts_what_went_with_it(api: Client) -> None:
    """A job outside that waits for one inside is cancelled too, and counted apart."""
    made = made_of(a="", b="a")
    outside = enqueue("free", depends_on=(made.jobs["b"].pk,))
    assert read(api.post(f"{WORKFLOWS}/{made.id}/cancel"), 200)["meta"] == {"changed": 2, "also": 1, "refused": 0}
    assert status_of(outside.pk) == "cancelled"


def test_a_second_cancel_is_harmless(api: Client) -> None:
    """There is nothing left to cancel, and the answer says so."""
    made = made_of(a="")
    api.post(f"{WORKFLOWS}/{made.id}/cancel")
    body = read(api.post(f"{WORKFLOWS}/{made.id}/cancel"), 200)
    assert body["message"] == "Cancelled, or asked to stop: 0 jobs."
    assert body["meta"] == {"changed": 0, "also": 0, "refused": 0}


@pytest.mark.parametrize(("query", "also"), [("", 2), ("?downstream=true", 2), ("?downstream=false", 0)])
def test_retry_runs_again_what_failed(api: Client, query: str, also: int) -> None:
    """What was cancelled because of it waits again, unless that was not wanted; both are counted."""
    made = made_of(a="", b="a", c="b", d="")
    end(made.jobs["a"])
    body = read(api.post(f"{WORKFLOWS}/{made.id}/retry{query}"), 200)
    assert body["message"] == "Will run again: 1 job."
    assert body["meta"] == {"changed": 1, "also": also, "refused": 0}
    assert body["data"]["counts"]["pending"] == 2 + also
    assert JobEvent.objects.get(kind="retried").actor == "api:tests"


def test_retry_tells_why_a_job_stays_as_it_is(api: Client) -> None:
    """A job that waits for a dead one outside is named with the reason; the others run again."""
    outside, made = enqueue("free"), made_of(a="")
    joined = enqueue("free", depends_on=(outside.pk,), workflow=made.id, on_failure="cancel")
    end(made.jobs["a"], outside)
    Job.objects.filter(pk=joined.pk).update(status="failed")
    body = read(api.post(f"{WORKFLOWS}/{made.id}/retry"), 200)
    assert body["meta"] == {"changed": 1, "also": 0, "refused": 1}
    reason = f"It waits for the job {outside.pk}, which is failed: retry that one, and this one follows."
    assert body["errors"] == [{"field": str(joined.pk), "message": reason}]


@pytest.mark.parametrize("rest", ["", "?downstream=x"])
def test_an_action_on_a_workflow_refuses_what_it_cannot_read(api: Client, rest: str) -> None:
    """A downstream that is neither true nor false is named; without one the default is in force."""
    made = made_of(a="")
    answer = api.post(f"{WORKFLOWS}/{made.id}/retry{rest}")
    if rest:
        assert problems(answer)[0][0] == "downstream"
    else:
        assert read(answer, 200)["meta"] == {"changed": 0, "also": 0, "refused": 0}
