"""Metadata: what a caller attaches to a job beside its payload, what is refused, what it survives, and who reads it."""

import math
import uuid
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import pytest

from jobs import (
    Context,
    NewJob,
    Options,
    Step,
    Task,
    enqueue,
    enqueue_many,
    insights,
    lifecycle,
    make_workflow,
    workflow,
)
from jobs.claims import Claim, Ended
from jobs.errors import InvalidJob, InvalidWorkflow
from jobs.lifecycle import Appetite, exchange
from jobs.limits import METADATA_RULE
from jobs.models import Job
from jobs.outcomes import Failed
from jobs.queries import DjangoSession, load
from jobs.series import enqueue_again_and_again
from scheduling import Backoff
from tests.support import WorkerThread, handler, wait_for

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("free_type")]

ACME = {"tenant": "acme", "trace": {"id": "4bf92f", "sampled": True}, "asked": ["ada", None, 1.5]}
AT_ONCE = Backoff(base=0.01, factor=1.0, cap=0.01)


def stored(job: Job) -> Any:
    """Return the metadata of a job as it stands in the database."""
    return Job.objects.values_list("metadata", flat=True).get(pk=job.pk)


# Kept


@pytest.mark.parametrize("given", [ACME, {}, {"\u00e9\"\\'": ["{}", ""]}, MappingProxyType(ACME)], ids=repr)
def test_what_is_attached_is_what_is_stored_and_returned(free_type: Task[..., None], given: Any) -> None:
    """Whatever the object looks like; and the payload, which the handler gets, knows nothing of it."""
    made = free_type.using(metadata=given).enqueue(n=1)
    assert (made.metadata, made.payload) == (dict(given), {"n": 1})
    assert stored(made) == dict(given)


def test_a_job_has_none_unless_it_was_given(django_assert_num_queries: Any) -> None:
    """The column is null, and the job is made by the same one statement as ever."""
    with django_assert_num_queries(1):
        made = enqueue("free", metadata=None)
    assert (made.metadata, stored(made), insights.metadata_of(made.pk)) == (None, None, {})


def test_what_comes_back_is_the_row_as_stored() -> None:
    """As jsonb has it: a tuple is a list, in the object as in the row."""
    made = enqueue("free", metadata={"pair": (1, 2)})
    assert made.metadata == stored(made) == {"pair": [1, 2]}


def test_a_job_with_a_unique_key_has_it_too() -> None:
    """The statement for unique keys stores it; one that meets a held key gets the other job, with its own."""
    first, second = (enqueue("free", unique_key="k", metadata={"n": n}) for n in (1, 2))
    assert (first.created, second.created) == (True, False)
    assert stored(first) == second.metadata == {"n": 1}


def test_many_jobs_keep_each_their_own() -> None:
    """In one statement, with and without."""
    given = [{"n": 1}, None, {"n": 2}, {}]
    made = enqueue_many([NewJob("free", {}, Options(metadata=each)) for each in given])
    assert [job.metadata for job in made] == given
    assert [stored(job) for job in made] == given


def test_jobs_that_share_options_share_no_object(free_type: Task[..., None]) -> None:
    """Whoever changes it in one of the jobs that came back changes it there only."""
    made = free_type.using(metadata={"tags": []}).enqueue_many([{"n": n} for n in range(3)])
    made[0].metadata["tags"].append("mine")
    assert [job.metadata for job in made] == [{"tags": ["mine"]}, {"tags": []}, {"tags": []}]


def test_what_many_jobs_of_a_call_share_is_sent_once(
    free_type: Task[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thousand jobs with one object of metadata are no thousand copies of it on the wire."""
    sent = []
    fetch = DjangoSession.fetch
    monkeypatch.setattr(
        DjangoSession, "fetch", lambda self, name, **given: sent.append(given) or fetch(self, name, **given)
    )
    free_type.using(metadata=ACME).enqueue_many([{"n": n} for n in range(1000)])
    assert [len(given["metadatas"]) for given in sent] == [1]
    assert Job.objects.filter(metadata=ACME).count() == 1000


def test_a_dict_that_changes_is_read_anew(free_type: Task[..., None]) -> None:
    """Options may be used again; the dict in them may be another one by then, however deep, and what was made stays."""
    tags = {"deep": {"n": 1}}
    task = free_type.using(metadata=tags)
    first = task.enqueue()
    tags["deep"]["n"] = 2
    second = task.enqueue()
    assert (
        [stored(first), stored(second)] == [first.metadata, second.metadata] == [{"deep": {"n": 1}}, {"deep": {"n": 2}}]
    )


def test_a_task_with_metadata_is_still_a_key(free_type: Task[..., None]) -> None:
    """A dict has no hash, and takes that of the task away as little."""
    assert {free_type.using(metadata={"a": 1}): 1}[free_type.using(metadata={"a": 1})] == 1
    assert free_type.using(metadata={"a": 1}) != free_type.using(metadata={"a": 2})


def test_jobs_of_a_workflow_have_their_own(free_type: Task[..., None]) -> None:
    """Each has what its task was given, not what its neighbours were."""
    graph = workflow()
    graph.add("a", free_type.using(metadata={"of": "a"}))
    graph.add("b", free_type, after="a")
    made = graph.enqueue()
    assert {name: stored(job) for name, job in made.jobs.items()} == {"a": {"of": "a"}, "b": None}


# What it survives


def test_a_retry_by_hand_keeps_it() -> None:
    """The job is the same one, with a new budget."""
    job, worker = enqueue("free", max_attempts=1, metadata=ACME), uuid.uuid4()
    (claim,) = exchange(DjangoSession(), Appetite(worker), [], 1).claimed.claims
    exchange(DjangoSession(), Appetite(worker), [Ended(claim, Failed("boom"))], 0)
    assert lifecycle.retry([job.pk], actor="ada").changed == {job.pk: "pending"}
    assert stored(job) == ACME


def test_an_edit_keeps_it() -> None:
    """What is changed is the payload, the queue, the priority or the time."""
    job = enqueue("free", metadata=ACME)
    lifecycle.edit(job.pk, actor="ada", payload={"n": 2}, queue="other", priority=1, run_at=None)
    assert (Job.objects.get(pk=job.pk).payload, stored(job)) == ({"n": 2}, ACME)


def test_a_replacement_keeps_that_of_the_job_that_is_there() -> None:
    """`replace` gives it another payload and time, and nothing else."""
    first = enqueue("free", {"n": 1}, unique_key="k", metadata={"from": "first"})
    second = enqueue("free", {"n": 2}, unique_key="k", on_conflict="replace", metadata={"from": "second"})
    assert (second.pk, second.payload, second.metadata) == (first.pk, {"n": 2}, {"from": "first"})


def test_it_belongs_to_the_job_and_not_to_its_series() -> None:
    """A job that runs again and again has it; whoever asked for that one did not ask for the others."""
    job, series = enqueue_again_and_again("free", {}, "1h", metadata=ACME)
    assert (stored(job), job.series_id) == (ACME, series.pk)
    assert "metadata" not in {field.attname for field in series._meta.concrete_fields}


# What is refused

NUL = "contains a NUL character at position 0, which PostgreSQL cannot store; remove it."
WAY_OUT = "at most 8,192 are stored: keep large data in a file or a table and pass its name or id."
REFUSED = [
    ([], f"metadata is []; {METADATA_RULE}"),
    ("acme", f"metadata is 'acme'; {METADATA_RULE}"),
    (0, f"metadata is 0; {METADATA_RULE}"),
    ([("tenant", "acme")], f"metadata is [('tenant', 'acme')]; {METADATA_RULE}"),
    ("x" * 9000, f"metadata is '{'x' * 99}; {METADATA_RULE}"),
    ({"a": math.nan}, "metadata.a is nan, which JSON cannot express; use None or a string."),
    ({"a": [0, "\x00"]}, f"metadata.a[1] {NUL}"),
    ({"\x00": 1}, f"a key of metadata {NUL}"),
    (
        {"a": "\ud800"},
        "metadata.a contains half of a surrogate pair at position 0, which PostgreSQL cannot store; remove it.",
    ),
    ({1: "a"}, "metadata has the key 1 of type int; JSON keys are strings."),
    (
        {"a": {1}},
        "metadata.a is of type set, which is not JSON; use None, bool, int, float, str, list and dict.",
    ),
    ({"a": "x" * 8185}, f"metadata is 8,193 bytes of JSON; {WAY_OUT}"),
    ({"a": "\u00e9" * 4093}, f"metadata is 8,194 bytes of JSON; {WAY_OUT}"),
]


@pytest.mark.parametrize(("given", "text"), REFUSED, ids=[text[:40] for _, text in REFUSED])
def test_what_is_no_small_object_of_json_is_refused_with_its_place(given: Any, text: str) -> None:
    """Before PostgreSQL sees it, whose error would end the caller's transaction."""
    with pytest.raises(InvalidJob) as caught:
        enqueue("free", metadata=given)
    assert (str(caught.value), caught.value.field) == (text, "metadata")
    assert not Job.objects.exists()


@pytest.mark.parametrize("given", [{"a": "x" * 8184}, {"a": "\u00e9" * 4092}], ids=["ascii", "accents"])
def test_what_is_just_small_enough_is_stored(given: dict[str, str]) -> None:
    """8,192 bytes as JSON in UTF-8."""
    assert stored(enqueue("free", metadata=given)) == given


def test_a_workflow_names_the_job_whose_metadata_is_wrong() -> None:
    """And makes none of its jobs."""
    with pytest.raises(InvalidWorkflow) as caught:
        make_workflow({"good": Step("free"), "bad": Step("free", {}, ["good"], Options(metadata={"a": math.inf}))})
    text = "bad: metadata.a is inf, which JSON cannot express; use None or a string."
    assert (str(caught.value), caught.value.field) == (text, "jobs.bad.metadata")
    assert not Job.objects.exists()


# What handlers read


def test_sync_and_async_handlers_read_it(start_worker: Callable[..., WorkerThread]) -> None:
    """A mapping, empty for a job without; it is no argument."""

    def read(ctx: Context, n: int) -> list[Any]:
        return [n, dict(ctx.metadata)]

    async def read_later(ctx: Context) -> dict[str, Any]:
        return dict(await ctx.ametadata())

    with handler(read) as sync, handler(read_later) as later:
        start_worker()
        jobs = [
            sync.using(metadata=ACME).enqueue(7),
            later.using(metadata=ACME).enqueue(),
            sync.enqueue(8),
            later.enqueue(),
        ]
        assert [wait_for(job.pk, "completed").result for job in jobs] == [[7, ACME], ACME, [8, {}], {}]


def test_every_attempt_reads_it(start_worker: Callable[..., WorkerThread]) -> None:
    """The second one finds what the first one found."""
    seen = []

    def fail_once(ctx: Context) -> None:
        seen.append(ctx.metadata)
        if ctx.attempt == 1:
            raise ConnectionError("once")

    with handler(fail_once, backoff=AT_ONCE) as task:
        start_worker()
        assert wait_for(task.using(metadata=ACME).enqueue().pk, "completed").attempt == 2
        assert seen == [ACME, ACME]


def test_a_handler_passes_it_on(start_worker: Callable[..., WorkerThread]) -> None:
    """What a handler has read can be attached to the jobs that it makes."""

    def spawn(ctx: Context) -> str:
        return str(enqueue("free", metadata=ctx.metadata).pk)

    with handler(spawn) as task:
        start_worker()
        child = wait_for(task.using(metadata=ACME).enqueue().pk, "completed").result
        assert insights.metadata_of(uuid.UUID(child)) == ACME


def test_nobody_who_does_not_ask_pays_for_it() -> None:
    """Neither the claim nor the statement for plain jobs knows of it, and a context of no stored job has none."""
    assert "metadata" not in load("claim") + load("claim_limited") + load("enqueue_one")
    assert "metadata" not in Claim._fields
    assert Context(Claim(uuid.uuid4(), "free", "q", 2.0, "{}", 1, 0, 3, 0.0, 0.0, 0.0)).metadata == {}


def test_lists_leave_it_out() -> None:
    """It may be 8 KB of each of hundreds of jobs."""
    enqueue("free", metadata=ACME)
    (job,) = insights.page_of_jobs(before=None, limit=10).jobs
    assert "metadata" in job.get_deferred_fields()
