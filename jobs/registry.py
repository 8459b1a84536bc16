"""The job types this process knows: name, handler, defaults and payload schema.

Handlers are found in the `jobs` and `tasks` modules of the installed apps. The registry calls no handler and stores
nothing; the worker runs what it looks up here, and enqueueing validates against the schema.
"""

import functools
import importlib
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, get_type_hints

import pydantic
from django.apps import apps

from jobs.conf import settings
from jobs.context import Context
from jobs.errors import ConfigurationError, InvalidPayload, UnknownType
from scheduling import Backoff

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]*")
NAME_LIMIT = 100
_MODULES = ("jobs", "tasks")


@dataclass(frozen=True)
class JobType:
    """A registered handler. What is None falls back to the setting of that name when it is used."""

    name: str
    handler: Callable[..., Any]
    queue: str | None = None
    priority: float | None = None  # 1 High to 3 Low
    max_attempts: int | None = None
    timeout: float | None = None  # seconds a run may take; None for no limit
    backoff: Backoff | None = None

    def __post_init__(self) -> None:
        """Refuse what could never run, naming the type."""
        if self.priority is not None and not 1 <= self.priority <= 3:
            raise ConfigurationError(f"{self.name}: priority is {self.priority}; use 1 (High) to 3 (Low).")
        if self.max_attempts is not None and not 1 <= self.max_attempts <= 1000:
            raise ConfigurationError(f"{self.name}: max_attempts is {self.max_attempts}; use 1 to 1000.")
        if self.timeout is not None and not 0 < self.timeout < float("inf"):
            raise ConfigurationError(f"{self.name}: timeout is {self.timeout}; use seconds above 0, or None.")
        for label, value in (("name", self.name), ("queue", self.queue)):
            if value is not None and not valid_name(value):
                raise ConfigurationError(f"{self.name}: {label} is {value!r}; {NAME_RULE}")

    @functools.cached_property
    def is_async(self) -> bool:
        """Whether the handler is a coroutine function."""
        return inspect.iscoroutinefunction(self.handler)

    @functools.cached_property
    def wants_context(self) -> bool:
        """Whether the handler's first parameter takes the `Context`."""
        first = next(iter(inspect.signature(self.handler).parameters.values()), None)
        return first is not None and (first.name == "ctx" or self._hints.get(first.name) is Context)

    @functools.cached_property
    def schema(self) -> type[pydantic.BaseModel]:
        """The payload's schema, derived from the handler's annotations."""
        fields: dict[str, Any] = {}
        extra: Any = "forbid"
        for parameter in self._payload_parameters:
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
        aliased = {f"field_{i}": (hint, pydantic.Field(default, alias=name))
                   for i, (name, (hint, default)) in enumerate(fields.items())}  # fmt: skip
        config = pydantic.ConfigDict(extra=extra, arbitrary_types_allowed=True, ser_json_inf_nan="constants")
        return pydantic.create_model(self.name, __config__=config, **aliased)

    @property
    def _payload_parameters(self) -> list[inspect.Parameter]:
        return list(inspect.signature(self.handler).parameters.values())[1 if self.wants_context else 0 :]

    @functools.cached_property
    def _hints(self) -> dict[str, Any]:
        return get_type_hints(self.handler, include_extras=True)

    def payload_from(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the payload that stands for a call of the handler with these arguments."""
        names = [p.name for p in self._payload_parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
        if len(args) > len(names):
            raise InvalidPayload(f"{self.name} takes {len(names)} positional arguments, {len(args)} were given.")
        given = dict(zip(names, args, strict=False))
        if twice := given.keys() & kwargs.keys():
            raise InvalidPayload(f"{self.name} got the argument {sorted(twice)[0]!r} twice.")
        return given | dict(kwargs)

    def validate(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        """Return the handler's keyword arguments for `payload`; `InvalidPayload` names every field that is wrong."""
        parsed = self._parse(payload)
        by_alias = {f.alias: getattr(parsed, name) for name, f in type(parsed).model_fields.items()}
        return by_alias | (parsed.model_extra or {})

    def normalise(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        """Return `payload` checked and as JSON values (a date becomes its text), ready to be stored.

        Defaults are left out, so that a job that waited through a deploy gets the newer default.
        """
        try:
            return self._parse(payload).model_dump(mode="json", by_alias=True, exclude_unset=True)
        except pydantic.PydanticSerializationError as error:
            raise InvalidPayload(f"The payload of {self.name} cannot be stored as JSON: {error}") from None

    def _parse(self, payload: Mapping[str, Any]) -> pydantic.BaseModel:
        try:
            return self.schema.model_validate(payload)
        except pydantic.ValidationError as error:
            raise InvalidPayload(f"The payload does not fit {self.name}: {_explain(error)}") from None


def _explain(error: pydantic.ValidationError) -> str:
    found = error.errors(include_url=False, include_context=False, include_input=False)
    parts = [f"{'.'.join(map(str, e['loc'])) or 'payload'}: {e['msg']}" for e in found[:10]]
    return "; ".join(parts) + (f"; and {len(found) - 10} more" if len(found) > 10 else "") + "."


NAME_RULE = f"use 1 to {NAME_LIMIT} letters, digits, and . _ : - inside it."


def valid_name(value: str) -> bool:
    """Whether `value` may name a type or a queue."""
    return len(value) <= NAME_LIMIT and NAME.fullmatch(value) is not None


class Registry:
    """The known types by name. One per process: `registry`."""

    def __init__(self) -> None:
        self._types: dict[str, JobType] = {}

    def add(self, job_type: JobType) -> None:
        """Register a type; `ConfigurationError` if another handler has the name, or if its schema cannot be made."""
        known = self._types.get(job_type.name)
        if known and _origin(known.handler) != _origin(job_type.handler):
            raise ConfigurationError(
                f"Two handlers are registered as {job_type.name!r}: {_origin(known.handler)} and "
                f"{_origin(job_type.handler)}. Give one of them another name: @job(name=...)."
            )
        self._types[job_type.name] = job_type

    def get(self, name: str) -> JobType:
        """Return the type called `name`; `UnknownType` lists what there is."""
        try:
            return self._types[name]
        except KeyError:
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

    def backoff_of(self, name: str) -> Backoff:
        """Return the retry delays of a type, the settings' if it has none or is unknown here."""
        known = self._types.get(name)
        return (known and known.backoff) or settings.BACKOFF


def _origin(handler: Callable[..., Any]) -> str:
    return f"{handler.__module__}.{handler.__qualname__}"


registry = Registry()


def autodiscover() -> None:
    """Import the `jobs` and `tasks` modules of every installed app, so that their handlers are registered."""
    for app in apps.get_app_configs():
        for module in _MODULES:
            name = f"{app.name}.{module}"
            if app.name != "jobs" and find_spec(name) is not None:
                _load(name)


def _load(module: str) -> None:
    try:
        importlib.import_module(module)
    except (Exception, SystemExit) as error:
        raise ConfigurationError(
            f"The module {module}, searched for job handlers, could not be imported: {type(error).__name__}: {error}"
        ) from error
