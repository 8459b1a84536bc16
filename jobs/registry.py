"""The job types this process knows: name, handler, defaults and payload schema.

The registry finds no handler (`jobs.discovery` does), calls none and stores nothing; the worker runs what it looks up
here, and enqueueing validates against the schema.
"""

import functools
import inspect
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, get_type_hints

import pydantic
from pydantic.errors import PydanticUserError

from jobs.conf import settings
from jobs.context import Context
from jobs.errors import ConfigurationError, InvalidPayload, UnknownType
from jobs.limits import (
    ATTEMPTS_RULE,
    NAME_RULE,
    PRIORITY_RULE,
    TIMEOUT_RULE,
    valid_attempts,
    valid_name,
    valid_priority,
    valid_timeout,
)
from jobs.schedules import Schedule
from scheduling import Backoff

logger = logging.getLogger("dilamme")

_ISOLATIONS = ("thread", "process")


@dataclass(frozen=True)
class JobType:
    """A registered handler. What is None falls back to the setting of that name when it is used."""

    name: str
    handler: Callable[..., Any]
    queue: str | None = None
    priority: float | None = None  # 1 High to 3 Low
    max_attempts: int | None = None
    timeout: float | None = None  # seconds a run may take; None for no limit
    backoff: Backoff | Callable[[int], float] | None = None  # or seconds, given how many attempts have failed
    retry_on: tuple[type[BaseException], ...] = ()  # if any, nothing else is tried again
    give_up_on: tuple[type[BaseException], ...] = ()  # never tried again
    schedule: Schedule | None = None
    isolation: str = "thread"  # or "process": a child of the worker, killed when the run is to stop
    interruptible: bool = False  # whether a cancellation interrupts an async handler at its next await

    def __post_init__(self) -> None:
        """Refuse what could never run, naming the type."""
        for label, value in (("name", self.name), ("queue", self.queue)):
            if value is not None and not valid_name(value):
                raise ConfigurationError(f"{self.name}: {label} is {value!r}; {NAME_RULE}")
        if not (callable(self.handler) and hasattr(self.handler, "__qualname__")):
            raise ConfigurationError(f"{self.name}: the handler is {self.handler!r}; declare a function.")
        if inspect.isgeneratorfunction(self.handler) or inspect.isasyncgenfunction(self.handler):
            raise ConfigurationError(f"{self.name}: the handler contains yield, so a call would run none of it.")
        if self.priority is not None and not valid_priority(self.priority):
            raise ConfigurationError(f"{self.name}: priority is {self.priority!r}; {PRIORITY_RULE}")
        if self.max_attempts is not None and not valid_attempts(self.max_attempts):
            raise ConfigurationError(f"{self.name}: max_attempts is {self.max_attempts!r}; {ATTEMPTS_RULE}")
        self._check_runs()

    def _check_runs(self) -> None:
        """Refuse rules about runs that could not be kept."""
        if self.timeout is not None and not valid_timeout(self.timeout):
            raise ConfigurationError(f"{self.name}: timeout is {self.timeout!r}; {TIMEOUT_RULE}")
        for label, errors in (("retry_on", self.retry_on), ("give_up_on", self.give_up_on)):
            if not _is_exceptions(errors):
                raise ConfigurationError(f"{self.name}: {label} is {errors!r}; use a tuple of exception classes.")
        if self.backoff is not None and not callable(self.backoff) and not isinstance(self.backoff, Backoff):
            way_out = "use a Backoff, or a function of the attempts that failed."
            raise ConfigurationError(f"{self.name}: backoff is {self.backoff!r}; {way_out}")
        if self.interruptible and not self.is_async:
            raise ConfigurationError(f"{self.name}: interruptible is for async handlers, which can stop at an await.")
        if self.isolation not in _ISOLATIONS:
            raise ConfigurationError(f"{self.name}: isolation is {self.isolation!r}; use 'thread' or 'process'.")
        if self.isolation == "process" and self.is_async:
            raise ConfigurationError(f"{self.name}: isolation='process' is for sync handlers; declare it with def.")

    def is_final(self, error: BaseException) -> bool:
        """Whether another attempt makes no sense after this error."""
        return isinstance(error, self.give_up_on) or bool(self.retry_on and not isinstance(error, self.retry_on))

    @functools.cached_property
    def is_async(self) -> bool:
        """Whether the handler is a coroutine function."""
        return inspect.iscoroutinefunction(self.handler)

    @functools.cached_property
    def wants_context(self) -> bool:
        """Whether the handler's first parameter takes the `Context`."""
        first = next(iter(inspect.signature(self.handler).parameters.values()), None)
        by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        return first is not None and first.kind in by_position and self._is_context(first)

    @functools.cached_property
    def schema(self) -> type[pydantic.BaseModel]:
        """The payload's schema, derived from the handler's annotations."""
        try:
            return self._make_schema()
        except (NameError, TypeError, PydanticUserError) as error:
            where = _origin(self.handler)
            raise ConfigurationError(f"{self.name}: the annotations of {where} make no schema: {error}") from error

    @functools.cached_property
    def _parameters(self) -> list[tuple[str, str]]:
        """The handler's parameters, each with the name of its field in the schema."""
        return [(str(field.alias), name) for name, field in self.schema.model_fields.items()]

    def _make_schema(self) -> type[pydantic.BaseModel]:
        fields: dict[str, Any] = {}
        extra: Any = "forbid"
        for parameter in self._payload_parameters:
            if self._is_context(parameter):
                raise ConfigurationError(
                    f"{self.name}: the handler's parameter {parameter.name} cannot get the Context, which is passed "
                    f"first and by position; make it the first parameter."
                )
            if parameter.kind is parameter.VAR_KEYWORD:
                extra = "allow"
            elif parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
                raise ConfigurationError(
                    f"{self.name}: the handler's parameter {parameter} cannot be filled from a payload, whose keys are "
                    f"names; make it an ordinary parameter."
                )
            else:
                default = ... if parameter.default is parameter.empty else parameter.default
                fields[parameter.name] = (self._hints.get(parameter.name, Any), default)
        # A field may bear the name of a BaseModel attribute ("json", "copy"): an alias keeps them apart.
        aliased: dict[str, Any] = {f"field_{i}": (hint, pydantic.Field(default, alias=name))
                   for i, (name, (hint, default)) in enumerate(fields.items())}  # fmt: skip
        config = pydantic.ConfigDict(extra=extra, arbitrary_types_allowed=True, ser_json_inf_nan="constants")
        return pydantic.create_model(self.name, __config__=config, **aliased)

    def _is_context(self, parameter: inspect.Parameter) -> bool:
        return parameter.name == "ctx" or self._hints.get(parameter.name) is Context

    @functools.cached_property
    def _context_name(self) -> str | None:
        return next(iter(inspect.signature(self.handler).parameters)) if self.wants_context else None

    @functools.cached_property
    def _payload_parameters(self) -> list[inspect.Parameter]:
        return list(inspect.signature(self.handler).parameters.values())[1 if self.wants_context else 0 :]

    @functools.cached_property
    def _hints(self) -> dict[str, Any]:
        return get_type_hints(self.handler, include_extras=True)

    def check_schedule(self) -> None:
        """Refuse a rule for a handler that cannot be called without arguments."""
        try:
            self.normalise({})
        except InvalidPayload as error:
            way_out = "give its parameters defaults, or make a series with a payload"
            raise ConfigurationError(f"{self.name} cannot recur without arguments: {error} ({way_out})") from None

    def payload_from(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the payload that stands for a call of the handler with these arguments."""
        if not args:
            return dict(kwargs)
        names = [p.name for p in self._payload_parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
        if len(args) > len(names):
            raise InvalidPayload(f"{self.name} takes {len(names)} positional arguments, {len(args)} were given.")
        given = dict(zip(names, args, strict=False))
        if twice := given.keys() & kwargs.keys():
            raise InvalidPayload(f"{self.name} got the argument {min(twice)!r} twice.")
        return given | dict(kwargs)

    def validate(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        """Return the handler's keyword arguments for `payload`; `InvalidPayload` names every field that is wrong."""
        parsed = self._parse(payload)
        arguments = {alias: getattr(parsed, name) for alias, name in self._parameters}
        return arguments | parsed.model_extra if parsed.model_extra else arguments

    def normalise(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        """Return `payload` checked and as JSON values (a date becomes its text), ready to be stored.

        Defaults are left out, so that a job that waited through a deploy gets the newer default.
        """
        try:
            return self._parse(payload).model_dump(mode="json", by_alias=True, exclude_unset=True)
        except ValueError as error:  # pydantic's own, of a lone surrogate, of too many levels
            raise InvalidPayload(f"The payload of {self.name} cannot be stored as JSON: {error}") from None

    def _parse(self, payload: Mapping[str, Any]) -> pydantic.BaseModel:
        try:
            parsed = self.schema.model_validate(payload)
        except pydantic.ValidationError as error:
            raise InvalidPayload(f"The payload does not fit {self.name}: {_explain(error)}") from None
        if parsed.model_extra and self._context_name in parsed.model_extra:
            raise InvalidPayload(
                f"The payload of {self.name} has the key {self._context_name!r}, which the worker fills."
            )
        return parsed


def _explain(error: pydantic.ValidationError) -> str:
    found = error.errors(include_url=False, include_context=False, include_input=False)
    parts = [f"{'.'.join(map(str, e['loc'])) or 'payload'}: {e['msg']}" for e in found[:10]]
    return "; ".join(parts) + (f"; and {len(found) - 10} more" if len(found) > 10 else "") + "."


class Registry:
    """The known types by name. One per process: `registry`."""

    def __init__(self) -> None:
        self._types: dict[str, JobType] = {}

    def add(self, job_type: JobType) -> None:
        """Register a type; `ConfigurationError` if another handler has the name, or if no payload can fit this one."""
        _ = job_type.schema
        known = self._types.get(job_type.name)
        if known and _origin(known.handler) != _origin(job_type.handler):
            raise ConfigurationError(
                f"Two handlers are registered as {job_type.name!r}: {_origin(known.handler)} and "
                f"{_origin(job_type.handler)}. Give one of them another name: @job(name=...)."
            )
        if job_type.schedule is not None:
            job_type.check_schedule()
        self._types[job_type.name] = job_type

    def get(self, name: str) -> JobType:
        """Return the type called `name`; `UnknownType` lists what there is."""
        try:
            return self._types[name]
        except (KeyError, TypeError):
            known = ", ".join(sorted(self._types)) or "none"
            raise UnknownType(f"No handler is registered for the type {name!r}. Known types: {known}.") from None

    def find(self, name: str) -> JobType | None:
        """Return the type called `name`, or None."""
        return self._types.get(name)

    def __iter__(self) -> Iterator[JobType]:
        return iter(list(self._types.values()))

    def remove(self, name: str) -> None:
        """Forget a type; for tests that register their own."""
        self._types.pop(name, None)

    def delay_of(self, name: str, attempts: int, wanted: float | None = None) -> float:
        """Return in how many seconds the next attempt follows when so many have failed.

        What the handler `wanted` comes first, then the policy of the type, then that of the settings; what is no
        number of seconds falls through to the next.
        """
        if wanted is not None and _is_delay(wanted):
            return wanted
        known = self._types.get(name)
        if known is None or known.backoff is None:
            return settings.BACKOFF.delay(attempts)
        if isinstance(known.backoff, Backoff):
            return known.backoff.delay(attempts)
        try:
            delay = known.backoff(attempts)
        except Exception:
            logger.exception("The backoff of %s failed after %s attempts; the settings' is used.", name, attempts)
        else:
            if _is_delay(delay):
                return delay
            logger.error("The backoff of %s gave %r after %s attempts; the settings' is used.", name, delay, attempts)
        return settings.BACKOFF.delay(attempts)


def _is_delay(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < float("inf")


def _is_exceptions(value: Any) -> bool:
    return isinstance(value, tuple) and all(isinstance(e, type) and issubclass(e, BaseException) for e in value)


def _origin(handler: Callable[..., Any]) -> str:
    return f"{handler.__module__}.{handler.__qualname__}"


registry = Registry()
