"""`@job`: turns a function into a task that can be enqueued. The words are those of django.tasks.

A face: it registers the type and hands over to `jobs.enqueueing`, and knows no rule of its own.
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, ParamSpec, TypeVar, overload

from jobs.enqueueing import NewJob, Options, aenqueue_many, enqueue_many
from jobs.errors import ConfigurationError
from jobs.models import Job
from jobs.registry import JobType, registry
from jobs.schedules import Schedule
from scheduling import Backoff

P = ParamSpec("P")
R = TypeVar("R")

# Options of `job` that say when it recurs, and what `Schedule` calls them.
_RULE = {"every": "every", "cron": "cron", "tz": "zone", "catch_up": "catch_up", "overlap": "overlap"}


@dataclass(frozen=True)
class Task(Generic[P, R]):
    """A handler that can be enqueued. Calling it runs the function here and now."""

    type: JobType
    call: Callable[P, R]
    options: Options = field(default_factory=Options)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the handler in the caller's thread, without a job."""
        return self.call(*args, **kwargs)

    @property
    def name(self) -> str:
        """The registered name of the type."""
        return self.type.name

    def using(self, **options: Any) -> "Task[P, R]":
        """Return the same task with other options of `Options`: priority, run_at, depends_on, metadata and so on."""
        return dataclasses.replace(self, options=dataclasses.replace(self.options, **options))

    def enqueue(self, *args: Any, **kwargs: Any) -> Job:
        """Make a job that will call the handler with these arguments; part of the caller's transaction."""
        return enqueue_many([self._new(args, kwargs)])[0]

    async def aenqueue(self, *args: Any, **kwargs: Any) -> Job:
        """Make a job from async code."""
        return (await aenqueue_many([self._new(args, kwargs)]))[0]

    def enqueue_many(self, payloads: Iterable[Mapping[str, Any]]) -> Sequence[Job]:
        """Make a job for each dict of arguments, all in one statement."""
        return enqueue_many([NewJob(self.name, payload, self.options) for payload in payloads])

    async def aenqueue_many(self, payloads: Iterable[Mapping[str, Any]]) -> Sequence[Job]:
        """Make a job for each dict of arguments, from async code."""
        return await aenqueue_many([NewJob(self.name, payload, self.options) for payload in payloads])

    def _new(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> NewJob:
        return NewJob(self.name, self.type.payload_from(args, kwargs), self.options)


@overload
def job(function: Callable[P, R], /) -> Task[P, R]: ...
@overload
def job(
    *,
    name: str | None = None,
    queue: str | None = None,
    priority: float | None = None,
    max_attempts: int | None = None,
    timeout: float | None = None,
    backoff: Backoff | Callable[[int], float] | None = None,
    retry_on: tuple[type[BaseException], ...] = (),
    give_up_on: tuple[type[BaseException], ...] = (),
    isolation: str = "thread",
    interruptible: bool = False,
    every: str = "",
    cron: str = "",
    tz: str = "UTC",
    catch_up: str = "one",
    overlap: str = "skip",
) -> Callable[[Callable[P, R]], Task[P, R]]: ...
def job(function: Callable[P, R] | None = None, /, *, name: str | None = None, **defaults: Any) -> Any:
    """Register a function, sync or async, as the handler of a job type.

    `name` defaults to the function's; `queue`, `priority` (1 High to 3 Low), `max_attempts`, `timeout` (seconds) and
    `backoff` (a `Backoff`, or seconds as a function of the attempts that failed) are what jobs of this type get unless
    they say otherwise. With `retry_on` only these exceptions are tried again; those of `give_up_on` never are. An async
    handler that is `interruptible` is interrupted at its next await when its job is cancelled. A sync one with
    `isolation="process"` runs in a child process, which is killed when its job is cancelled or past its timeout.

    With `every` (an interval such as `5m`) or `cron`, in the time zone `tz`, it recurs: workers keep a series of this
    name. `catch_up` says what becomes of missed slots (`skip`, `one`, `all`), `overlap` what a slot does while an
    earlier run goes on (`skip`, `allow`).

    The payload's schema is derived from the annotations; a first parameter called `ctx` gets the `Context` of the run.
    Raises `ConfigurationError`.
    """

    def register(handler: Callable[P, R]) -> Task[P, R]:
        own_name = str(getattr(handler, "__name__", handler)) if name is None else name
        rule = {word: defaults[option] for option, word in _RULE.items() if option in defaults}
        rest = {option: value for option, value in defaults.items() if option not in _RULE}
        kind = JobType(name=own_name, handler=handler, schedule=_schedule(own_name, rule), **rest)
        registry.add(kind)
        return Task(kind, handler)

    return register if function is None else register(function)


def _schedule(name: str, rule: Mapping[str, str]) -> Schedule | None:
    if not rule:
        return None
    try:
        return Schedule(**rule)
    except ValueError as error:
        raise ConfigurationError(f"{name}: {error}") from None
