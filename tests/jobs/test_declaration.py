"""`@job`: a function that can be called, and enqueued under its own name with options of its own."""

import uuid
from datetime import UTC, datetime
from typing import Any

import pytest

from jobs import Context, Task, job
from jobs.errors import InvalidPayload
from jobs.models import Job
from jobs.registry import registry
from scheduling import Backoff
from tests.support import handler

pytestmark = pytest.mark.django_db


def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


def test_calling_a_task_runs_the_function_here() -> None:
    """A handler stays a function that can be tested and used as one."""
    with handler(add) as task:
        assert task(2, b=3) == 5
    assert not Job.objects.exists()


def test_a_decorator_without_parentheses_registers_as_well() -> None:
    """The shortest form works; the options are the settings' then."""
    try:
        task = job(add)
        assert isinstance(task, Task)
        assert registry.get("add") == task.type
        assert task.enqueue(1).queue == "default"
    finally:
        registry.remove("add")


def test_enqueue_takes_the_arguments_of_the_function() -> None:
    """By position or by name, the payload has their names; defaults are left out."""
    with handler(add, name="add") as task:
        made = [task.enqueue(1, 2), task.enqueue(1, b=2), task.enqueue(a=1)]
    assert [made_job.payload for made_job in made] == [{"a": 1, "b": 2}, {"a": 1, "b": 2}, {"a": 1}]
    assert {made_job.type for made_job in made} == {task.name} == {"add"}


def with_context(ctx: Context, a: int) -> None:
    """Want the context."""


def test_the_context_is_no_argument() -> None:
    """The worker gives it; whoever enqueues does not."""
    with handler(with_context) as task:
        assert task.enqueue(5).payload == {"a": 5}


def test_arguments_that_do_not_fit_make_no_job() -> None:
    """The mistake is told where it was made."""
    with handler(add, name="add") as task, pytest.raises(InvalidPayload) as caught:
        task.enqueue("x")
    assert str(caught.value) == (
        "The payload does not fit add: a: Input should be a valid integer, unable to parse string as an integer."
    )
    assert not Job.objects.exists()


def test_the_options_of_the_type_are_those_of_its_jobs() -> None:
    """What stands beside the handler need not be repeated at each call."""
    with handler(add, queue="maths", priority=1.5, max_attempts=7, backoff=Backoff(base=2)) as task:
        made = task.enqueue(1)
    assert (made.queue, made.priority, made.max_attempts) == ("maths", 1.5, 7)


def test_using_gives_a_task_with_other_options() -> None:
    """Options of one call win over those of the type, add up, and leave the task itself as it was."""
    later = datetime(2040, 1, 1, tzinfo=UTC)
    with handler(add, queue="maths", priority=3.0) as task:
        urgent = task.using(priority=1).using(run_at=later, max_attempts=1)
        made, plain = urgent.enqueue(1), task.enqueue(1)
    assert (made.queue, made.priority, made.run_at, made.max_attempts) == ("maths", 1.0, later, 1)
    assert (plain.priority, plain.max_attempts) == (3.0, 3)
    assert plain.run_at < later


def test_using_an_unknown_option_is_refused() -> None:
    """A misspelt option is not ignored."""
    with handler(add) as task, pytest.raises(TypeError, match="priorty"):
        task.using(priorty=1)


def test_using_parents_makes_a_job_that_waits() -> None:
    """Dependencies are an option like any other."""
    with handler(add) as task:
        parent = task.enqueue(1)
        child = task.using(depends_on=[parent.pk], on_failure="run").enqueue(2)
    assert child.unmet == 1
    assert child.parent_edges.get().on_failure == "run"


def test_many_are_made_at_once(django_assert_num_queries: Any) -> None:
    """One statement makes them all, in the order given and with the options of the task."""
    with handler(add) as task, django_assert_num_queries(1):
        made = task.using(queue="bulk").enqueue_many({"a": i} for i in range(5))
    assert [made_job.payload["a"] for made_job in made] == [0, 1, 2, 3, 4]
    assert {made_job.queue for made_job in made} == {"bulk"}


async def add_later(a: int) -> int:
    """Add nothing, asynchronously."""
    return a


@pytest.mark.usefixtures("async_db")
async def test_async_code_enqueues_without_blocking_its_loop() -> None:
    """The async forms make the same jobs, for sync and async handlers."""
    with handler(add_later) as task:
        one = await task.aenqueue(5)
        many = await task.aenqueue_many([{"a": 1}, {"a": 2}])
    stored = [found.payload async for found in Job.objects.order_by("pk")]
    assert stored == [one.payload, *(made.payload for made in many)] == [{"a": 5}, {"a": 1}, {"a": 2}]


async def test_calling_an_async_task_gives_its_coroutine() -> None:
    """A call is that of the function, whatever its kind."""
    with handler(add_later) as task:
        assert await task(5) == 5


def test_the_python_interface_is_what_the_package_exports() -> None:
    """Everything that users import comes from `jobs` itself, and nothing else does."""
    import jobs

    for name in jobs.__all__:
        assert getattr(jobs, name).__name__.rpartition(".")[2] in (name, name.removeprefix("a"))
    with pytest.raises(AttributeError, match="module 'jobs' has no attribute 'uuid7'"):
        _ = jobs.uuid7


def test_an_id_is_known_before_the_commit() -> None:
    """Whoever enqueues can store the id beside his own rows at once."""
    with handler(add) as task:
        made = task.enqueue(1)
    assert isinstance(made.pk, uuid.UUID)
    assert Job.objects.get(pk=made.pk) == made
