"""Whole graphs: how they are put together, what is refused, and what their handlers know of them."""

import threading
import uuid
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from jobs import Context, NewJob, Options, Step, Task, enqueue, enqueue_many, lifecycle, make_workflow, workflow
from jobs.errors import InvalidJob, InvalidWorkflow, UnknownDependency
from jobs.limits import WORKFLOW_LIMIT
from jobs.models import Job, JobDependency
from jobs.workflows import MadeWorkflow, amake_workflow
from scheduling import Backoff
from tests.support import WorkerThread, handler, wait_for

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("free_type")]

AT_ONCE = Backoff(base=0.01, factor=1.0, cap=0.01)


def edges(made: MadeWorkflow) -> set[tuple[str, str, str]]:
    """Return the edges inside a graph: child, parent and what a failure does."""
    rows = JobDependency.objects.filter(child__workflow_id=made.id, parent__workflow_id=made.id)
    return set(rows.values_list("child__step", "parent__step", "on_failure"))


def refusal(steps: Mapping[str, Step], error: type[InvalidJob] = InvalidWorkflow) -> tuple[str, str]:
    """Return text and field with which a graph is refused; nothing of it may be stored."""
    before = Job.objects.count()
    with pytest.raises(error) as caught:
        make_workflow(steps)
    assert (Job.objects.count(), JobDependency.objects.count()) == (before, 0)
    return str(caught.value), caught.value.field


# Put together


def test_a_graph_is_put_together_job_by_job(free_type: Task[..., None]) -> None:
    """Each call names its job, what it is after, and how it is to run; the ids ascend along every edge."""
    graph = workflow()
    assert graph.add("fetch", free_type, url="x") == "fetch"
    graph.add("left", free_type, after="fetch")
    graph.add("right", free_type.using(on_failure="run", priority=1), after=["fetch"])
    graph.add("join", free_type, after={"left", "right"}, n=1)
    made = graph.enqueue()
    assert list(made.jobs) == ["fetch", "left", "right", "join"]
    assert [job.pk for job in made.jobs.values()] == sorted(job.pk for job in made.jobs.values())
    assert {(job.workflow_id, job.step) for job in Job.objects.all()} == {(made.id, name) for name in made.jobs}
    assert {name: (job.unmet, job.payload) for name, job in made.jobs.items()} == {
        "fetch": (0, {"url": "x"}), "left": (1, {}), "right": (1, {}), "join": (2, {"n": 1}),
    }  # fmt: skip
    assert edges(made) == {
        ("left", "fetch", "cancel"), ("right", "fetch", "run"), ("join", "left", "cancel"), ("join", "right", "cancel"),
    }  # fmt: skip
    assert Job.objects.get(step="right").priority == 1


def test_jobs_may_be_given_in_any_order() -> None:
    """Parents are stored first, whatever comes first in the mapping; otherwise the order stays."""
    made = make_workflow({
        "z": Step("free", after=["y", "x"]), "b": Step("free"), "y": Step("free", after=["x"]), "x": Step("free"),
    })  # fmt: skip
    assert list(made.jobs) == ["b", "x", "y", "z"]
    assert [job.pk for job in made.jobs.values()] == list(Job.objects.order_by("id").values_list("id", flat=True))


def test_a_name_may_be_repeated_among_those_that_a_job_is_after() -> None:
    """It counts once, and so does a parent that is named and given by its id."""
    made = make_workflow({"a": Step("free"), "b": Step("free", after=["a", "a"])})
    assert (made.jobs["b"].unmet, len(edges(made))) == (1, 1)


def test_a_job_may_wait_for_jobs_outside_as_well() -> None:
    """The options name them by id, beside the names inside; those that have completed are settled."""
    waits, done = enqueue("free"), enqueue("free")
    Job.objects.filter(pk=done.pk).update(status="completed", finished_at=done.created_at)
    outside = Options(depends_on=[waits.pk, done.pk])
    made = make_workflow({"a": Step("free"), "b": Step("free", {}, ["a"], outside)})
    assert made.jobs["b"].unmet == Job.objects.get(step="b").unmet == 2
    parents = made.jobs["b"].parent_edges.values_list("parent", "settled")
    assert set(parents) == {(waits.pk, False), (done.pk, True), (made.jobs["a"].pk, False)}


def test_a_graph_may_be_made_twice(free_type: Task[..., None]) -> None:
    """The builder keeps what it was told; each making is a graph of its own."""
    graph = workflow()
    graph.add("a", free_type)
    first, second = graph.enqueue(), graph.enqueue()
    assert first.id != second.id
    assert Job.objects.count() == 2


def test_arguments_may_have_the_names_of_parameters() -> None:
    """A handler whose parameter is called `name` or `task` can be added by keyword like any other."""

    def greet(name: str, task: str) -> None:
        """Take two words."""

    with handler(greet) as task:
        graph = workflow()
        graph.add("a", task, name="ada", task="x")
        graph.add("b", task, "ada", "x")
        made = graph.enqueue()
    assert {tuple(sorted(job.payload.items())) for job in made.jobs.values()} == {(("name", "ada"), ("task", "x"))}


@pytest.mark.usefixtures("async_db")
async def test_async_code_makes_graphs_too(free_type: Task[..., None]) -> None:
    """Both ways, with the same result."""
    graph = workflow()
    graph.add("b", free_type, after=graph.add("a", free_type))
    made = await graph.aenqueue()
    other = await amake_workflow({"a": Step("free")})
    assert (list(made.jobs), list(other.jobs), made.jobs["b"].unmet) == (["a", "b"], ["a"], 1)


def test_ten_thousand_jobs_are_made_in_one_call() -> None:
    """A chain, which is as deep as it is large."""
    made = make_workflow({f"n{n}": Step("free", {}, [f"n{n - 1}"] if n else []) for n in range(WORKFLOW_LIMIT)})
    assert len(made.jobs) == Job.objects.filter(workflow_id=made.id).count() == WORKFLOW_LIMIT
    assert Job.objects.filter(unmet=1).count() == JobDependency.objects.count() == WORKFLOW_LIMIT - 1


def test_a_graph_is_a_part_of_the_callers_transaction() -> None:
    """It goes with it, to the last edge."""
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        make_workflow({"a": Step("free"), "b": Step("free", after=["a"])})
        raise ZeroDivisionError
    assert (Job.objects.count(), JobDependency.objects.count()) == (0, 0)


def test_jobs_with_and_without_a_workflow_may_be_made_in_one_call() -> None:
    """In either order."""
    id_ = uuid.uuid4()
    for options in ([Options(), Options(workflow=id_)], [Options(workflow=id_), Options()]):
        made = enqueue_many([NewJob("free", {}, each) for each in options])
        stored = [Job.objects.get(pk=job.pk).workflow_id for job in made]
        assert stored == [job.workflow_id for job in made] == [each.workflow for each in options]


# What is refused


def steps(**after: str) -> dict[str, Step]:
    """Return steps from the names that each is after, a letter each."""
    return {name: Step("free", {}, tuple(parents)) for name, parents in after.items()}


def arcs_of(text: str) -> tuple[str, set[tuple[str, str]]]:
    """Return a refusal in parts: a circle may be entered anywhere."""
    before, _, circle = text.rstrip(".").rpartition(": ")
    return (before, set(pairwise(circle.split(" -> ")))) if " -> " in circle else (text, set())


@pytest.mark.parametrize(("wrong", "text"), [
    ({}, "The workflow has no jobs; give it at least one."),
    (steps(a="", b="d", c="b", d="c"), "The jobs wait for each other in a circle: d -> b -> c -> d."),
    (steps(a="a"), "The jobs wait for each other in a circle: a -> a."),
    (steps(a="", b="x"), "b is after 'x', which is no job of this workflow; there are a, b."),
    ({"a b": Step("free")}, "A job is called 'a b'; use 1 to 100 letters, digits, and . _ : - inside it."),
    ({"": Step("free")}, "A job is called ''; use 1 to 100 letters, digits, and . _ : - inside it."),
    ({"a": Step("free"), "b": Step("free", {}, "a")}, "b is after 'a'; use a list of names."),
    ({"a": Step("free", options=Options(unique_key="k"))},
     "a has a unique key, but a job of a workflow is always made; leave the key out."),
    ({"a": Step("free", {"n": 1}, options=Options(unique=["n"]))},
     "a has a unique key, but a job of a workflow is always made; leave the key out."),
    (steps(**dict.fromkeys(map("n{}".format, range(WORKFLOW_LIMIT + 1)), "")),
     "10,001 jobs; at most 10,000 are made in one workflow."),
])  # fmt: skip
def test_a_graph_that_is_none_is_refused_with_the_reason(wrong: dict[str, Step], text: str) -> None:
    """Before anything is stored; a cycle is named."""
    found, field = refusal(wrong)
    assert arcs_of(found) == arcs_of(text)
    assert field == "jobs"


def test_a_circle_of_thousands_is_named_in_short() -> None:
    """The text stays readable, and nothing recurses."""
    ring = {f"n{n}": Step("free", {}, [f"n{(n - 1) % 5000}"]) for n in range(5000)}
    text, _ = refusal(ring)
    assert len(text) < 250
    assert " -> ... -> " in text


def test_a_job_that_could_not_be_made_by_itself_is_named() -> None:
    """With its type, and what is wrong."""

    def typed(n: int) -> None:
        """Take a number."""

    good = {"good": Step("free")}
    with handler(typed):
        text, field = refusal({**good, "bad": Step("test_typed", {"n": "x"}, ["good"])})
        assert text.startswith("bad: The payload does not fit test_typed: n: Input should be a valid integer")
        assert field == "jobs.bad.payload"
    text, field = refusal({**good, "bad": Step("nonsense", {}, ["good"])})
    assert text.startswith("bad: No handler is registered for the type 'nonsense'. Known types: ")
    assert field == "jobs.bad.type"
    text, field = refusal({**good, "bad": Step("free", {}, ["good"], Options(priority=9))})
    assert (text, field) == ("bad: priority is 9; use a number from 1 (High) to 3 (Low).", "jobs.bad.priority")


def test_a_job_outside_that_is_not_there_or_dead_is_refused() -> None:
    """As it is for a single job."""
    nobody, dead = uuid.uuid4(), enqueue("free")
    lifecycle.cancel([dead.pk], actor="ada")
    missing = {"a": Step("free"), "b": Step("free", {}, ["a"], Options(depends_on=[nobody]))}
    assert refusal(missing, UnknownDependency)[0].startswith(f"No job has the id {nobody}")
    never = {"a": Step("free"), "b": Step("free", {}, ["a"], Options(depends_on=[dead.pk]))}
    assert refusal(never, InvalidJob)[0].startswith(f"The job {dead.pk} has the status cancelled")


def test_a_name_is_given_once(free_type: Task[..., None]) -> None:
    """A second job of a name would take the place of the first."""
    graph = workflow()
    graph.add("a", free_type)
    with pytest.raises(InvalidWorkflow, match="Two jobs are called 'a'; give one of them another name"):
        graph.add("a", free_type)
    assert len(graph.enqueue().jobs) == 1


# What its handlers know


def test_a_handler_reads_the_results_of_its_parents(start_worker: Callable[..., WorkerThread]) -> None:
    """By their names; one that failed is there as well if the job runs all the same."""

    def fetch(n: int) -> dict[str, int]:
        if n < 0:
            raise ValueError(n)
        return {"n": n}

    def add(ctx: Context) -> dict[str, Any]:
        return {name: [parent.type, parent.status, parent.result] for name, parent in ctx.parents.items()}

    async def add_later(ctx: Context) -> list[str]:
        return sorted(await ctx.aparents())

    with handler(fetch, max_attempts=1) as first, handler(add) as second, handler(add_later) as third:
        graph = workflow()
        names = [graph.add(f"f{n}", first, n) for n in (1, 2, -1)]
        graph.add("sum", second.using(on_failure="run"), after=names)
        graph.add("later", third, after=["sum", "f1"])
        graph.add("alone", third)
        made = graph.enqueue()
        start_worker()
        assert wait_for(made.jobs["sum"].pk, "completed").result == {
            "f1": ["test_fetch", "completed", {"n": 1}],
            "f2": ["test_fetch", "completed", {"n": 2}],
            "f-1": ["test_fetch", "failed", None],
        }
        assert wait_for(made.jobs["later"].pk, "completed").result == ["f1", "sum"]
        assert wait_for(made.jobs["alone"].pk, "completed").result == []


def test_a_parent_outside_does_not_take_the_name_of_one_inside(start_worker: Callable[..., WorkerThread]) -> None:
    """Names hold in one graph only; who stands outside is known by its id."""

    def say(word: str) -> str:
        return word

    def gather(ctx: Context) -> dict[str, str]:
        return {name: parent.result for name, parent in ctx.parents.items()}

    with handler(say) as first, handler(gather) as second:
        other = make_workflow({"fetch": Step(first.name, {"word": "outside"})}).jobs["fetch"]
        graph = workflow()
        graph.add("fetch", first, "inside")
        graph.add("gather", second.using(depends_on=[other.pk]), after="fetch")
        made = graph.enqueue()
        start_worker()
        result = wait_for(made.jobs["gather"].pk, "completed").result
        assert result == {"fetch": "inside", str(other.pk): "outside"}


def test_a_handler_adds_a_job_to_its_own_graph(start_worker: Callable[..., WorkerThread]) -> None:
    """It may wait for the very run that makes it, and belongs to the graph for whoever looks at it or cancels it."""
    go_on = threading.Event()

    def spawn(ctx: Context) -> str:
        child = enqueue("free", workflow=ctx.workflow_id, step="extra", depends_on=[ctx.job_id])
        assert go_on.wait(20)
        return str(child.pk)

    with handler(spawn) as task:
        graph = workflow()
        graph.add("spawn", task)
        made = graph.enqueue()
        start_worker()
        alone = task.enqueue()
        go_on.set()
        parent = wait_for(made.jobs["spawn"].pk, "completed")
        extra = wait_for(uuid.UUID(parent.result), "completed")
        assert (extra.workflow_id, extra.step) == (made.id, "extra")
        assert extra.started_at >= parent.finished_at
        assert wait_for(uuid.UUID(wait_for(alone.pk, "completed").result), "completed").workflow_id is None


def test_a_handler_knows_for_when_it_was_meant(start_worker: Callable[..., WorkerThread]) -> None:
    """The time that was asked for, in every attempt; not the one of the retry."""
    seen = []

    def look(ctx: Context) -> None:
        seen.append(ctx.scheduled_at)
        if ctx.attempt < 3:
            raise ValueError

    with handler(look, backoff=AT_ONCE) as task:
        wanted = timezone.now() - timedelta(hours=1)
        start_worker()
        wait_for(task.using(run_at=wanted).enqueue().pk, "completed")
        now = task.enqueue()
        wait_for(now.pk, "completed")
    assert [abs(when - wanted) < timedelta(milliseconds=1) for when in seen[:3]] == [True] * 3
    assert all(isinstance(when, datetime) and when.utcoffset() == timedelta(0) for when in seen)
    assert abs(seen[3] - now.scheduled_at) < timedelta(milliseconds=1)
