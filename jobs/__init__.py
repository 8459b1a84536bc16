"""Dilamme's Python interface: `@job` declares a handler, `enqueue` makes jobs, `Context` is what a handler is given.

Names are loaded on first use, because Django imports this package before its models can be.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jobs.context import Context as Context
    from jobs.declaration import Task as Task
    from jobs.declaration import job as job
    from jobs.enqueueing import NewJob as NewJob
    from jobs.enqueueing import Options as Options
    from jobs.enqueueing import aenqueue as aenqueue
    from jobs.enqueueing import aenqueue_many as aenqueue_many
    from jobs.enqueueing import enqueue as enqueue
    from jobs.enqueueing import enqueue_many as enqueue_many
    from jobs.errors import Abort as Abort
    from jobs.errors import DilammeError as DilammeError
    from jobs.errors import JobCancelled as JobCancelled
    from jobs.errors import Retry as Retry
    from jobs.errors import Snooze as Snooze
    from jobs.workflows import Step as Step
    from jobs.workflows import make_workflow as make_workflow
    from jobs.workflows import workflow as workflow

_HOMES = {
    "Context": "context",
    "Task": "declaration",
    "job": "declaration",
    "NewJob": "enqueueing",
    "Options": "enqueueing",
    "aenqueue": "enqueueing",
    "aenqueue_many": "enqueueing",
    "enqueue": "enqueueing",
    "enqueue_many": "enqueueing",
    "Abort": "errors",
    "DilammeError": "errors",
    "JobCancelled": "errors",
    "Retry": "errors",
    "Snooze": "errors",
    "Step": "workflows",
    "make_workflow": "workflows",
    "workflow": "workflows",
}

__all__ = sorted(_HOMES)  # noqa: PLE0605  one list of names, not two


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"jobs.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'jobs' has no attribute {name!r}")
