"""How whole graphs of jobs are made: from names that hold in one graph only, checked, and stored in one transaction.

The jobs are stored parents first, so that ids ascend along every edge. What a graph means for its jobs is no business
of this module: edges are edges, however they were made.
"""

import dataclasses
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from asgiref.sync import sync_to_async

from jobs.drafts import NewJob, Options, drafts_of
from jobs.enqueueing import store
from jobs.errors import InvalidJob, InvalidWorkflow, UnknownType
from jobs.ids import uuid7
from jobs.limits import NAME_RULE, WORKFLOW_LIMIT, valid_name
from jobs.models import Job
from jobs.queries import DjangoSession
from scheduling import graph


@dataclass(frozen=True, slots=True)
class Step:
    """A job of a graph, and the names of those it waits for. Its options may name jobs outside as well."""

    type: str
    payload: Mapping[str, Any] = field(default_factory=dict)
    after: Collection[str] = ()
    options: Options = field(default_factory=Options)


@dataclass(frozen=True, slots=True)
class MadeWorkflow:
    """A graph as it was made: its id, and its jobs by name, parents first."""

    id: uuid.UUID
    jobs: Mapping[str, Job]


def make_workflow(steps: Mapping[str, Step]) -> MadeWorkflow:
    """Make all jobs of a graph, or none; part of the caller's transaction.

    Raises `InvalidWorkflow` for a name that is none, an edge to nowhere, a cycle, too many jobs, and a job that could
    not be made by itself, which it names; and what `enqueue` raises of parents outside.
    """
    ordered = _in_order(steps)
    id_ = uuid7()
    new_jobs = {name: _new_job(name, steps[name], id_) for name in ordered}
    try:
        drafts = drafts_of(new_jobs.values())
    except (InvalidJob, UnknownType):
        _blame(new_jobs)
        raise
    ids = {name: draft.id for name, draft in zip(ordered, drafts, strict=True)}
    parents = {
        draft.id: list(dict.fromkeys([*(ids[other] for other in steps[name].after), *draft.terms.parents]))
        for name, draft in zip(ordered, drafts, strict=True)
    }
    made = store(DjangoSession(), drafts, parents)
    return MadeWorkflow(id_, dict(zip(ordered, made, strict=True)))


def _new_job(name: str, step: Step, workflow: uuid.UUID) -> NewJob:
    return NewJob(step.type, step.payload, dataclasses.replace(step.options, workflow=workflow, step=name))


def _blame(new_jobs: Mapping[str, NewJob]) -> None:
    """Raise what is wrong with the first of these that is wrong, naming it."""
    for name, new in new_jobs.items():
        try:
            drafts_of([new])
        except (InvalidJob, UnknownType) as error:
            field = getattr(error, "field", "type")
            raise InvalidWorkflow(f"{name}: {error}", field=f"jobs.{name}.{field}") from None


amake_workflow = sync_to_async(make_workflow)


def _in_order(steps: Mapping[str, Step]) -> Sequence[str]:
    """Return the names, parents first."""
    if not steps:
        raise InvalidWorkflow("The workflow has no jobs; give it at least one.", field="jobs")
    if len(steps) > WORKFLOW_LIMIT:
        text = f"{len(steps):,} jobs; at most {WORKFLOW_LIMIT:,} are made in one workflow."
        raise InvalidWorkflow(text, field="jobs")
    for name, step in steps.items():
        _check(name, step, steps)
    try:
        return graph.in_order({name: step.after for name, step in steps.items()})
    except graph.Cycle as cycle:
        raise InvalidWorkflow(f"The jobs wait for each other in a circle: {cycle}.", field="jobs") from None


def _check(name: str, step: Step, steps: Mapping[str, Step]) -> None:
    if not valid_name(name):
        raise InvalidWorkflow(f"A job is called {name!r}; {NAME_RULE}", field="jobs")
    if step.options.unique_key is not None or step.options.unique:
        text = f"{name} has a unique key, but a job of a workflow is always made; leave the key out."
        raise InvalidWorkflow(text, field="jobs")
    if isinstance(step.after, str):
        raise InvalidWorkflow(f"{name} is after {step.after!r}; use a list of names.", field="jobs")
    if unknown := next((other for other in step.after if other not in steps), None):
        known = ", ".join(list(steps)[:10])
        text = f"{name} is after {unknown!r}, which is no job of this workflow; there are {known}."
        raise InvalidWorkflow(text, field="jobs")


class Workflow:
    """A graph that is being put together: `add` its jobs, then `enqueue` it."""

    def __init__(self) -> None:
        self._steps: dict[str, Step] = {}

    def add(self, name: str, task: Any, /, *args: Any, after: str | Collection[str] = (), **kwargs: Any) -> str:
        """Add a call of a task, to be made when those it is `after` have completed; returns its name.

        `on_failure` and other options are those of `task.using(...)`.
        """
        if name in self._steps:
            raise InvalidWorkflow(f"Two jobs are called {name!r}; give one of them another name.", field="jobs")
        names = (after,) if isinstance(after, str) else tuple(after)
        payload = task.type.payload_from(args, kwargs)
        self._steps[name] = Step(task.name, payload, names, task.options)
        return name

    def enqueue(self) -> MadeWorkflow:
        """Make all of it in one transaction, or in the caller's."""
        return make_workflow(self._steps)

    async def aenqueue(self) -> MadeWorkflow:
        """Make all of it, from async code."""
        return await amake_workflow(self._steps)


def workflow() -> Workflow:
    """Return an empty graph."""
    return Workflow()
