"""Every setting of Dilamme: one typed class of defaults, overridden by the `DILAMME` dict of the Django settings.

A default stands here and nowhere else. Settings are read when they are used, so a test may override them; a mistake
is found by `manage.py check` and raised, with the same text, by the first use.
"""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import NoneType
from typing import Any, cast

from django.conf import settings as django_settings
from django.core.signals import setting_changed

from jobs.errors import ConfigurationError
from jobs.limits import (
    ATTEMPTS_RULE,
    NAME_RULE,
    PRIORITY_RULE,
    valid_attempts,
    valid_name,
    valid_priority,
)
from scheduling import Aging, Backoff


@dataclass(frozen=True, slots=True)
class Settings:
    """What `settings.DILAMME` may contain. Durations are seconds, sizes are bytes unless said otherwise."""

    # Where jobs are stored, and how workers hear of new ones
    DATABASE: str = "default"  # the alias in DATABASES that holds the jobs
    LISTEN: bool = True  # wake up by LISTEN/NOTIFY; without it workers poll
    LISTEN_URL: str = ""  # a libpq URL for LISTEN, when DATABASE goes through PgBouncer in transaction mode
    POLL_INTERVAL: float = 5.0  # an idle worker looks for work at least this often, whatever it hears

    # What happens while the database is away
    SPOOL: str = ""  # a directory on a local disk that keeps jobs and outcomes until it is back; none: they are refused
    SPOOL_LIMIT: int = 64 * 1024 * 1024  # bytes that one process may keep there

    # Liveness
    LEASE: float = 30.0  # a worker not heard of for this long is lost, and its jobs are taken back
    SWEEP_INTERVAL: float = 10.0  # how often lost workers are looked for

    # What a job gets when nobody says otherwise
    DEFAULT_QUEUE: str = "default"
    DEFAULT_PRIORITY: float = 2.0  # 1 High, 2 Medium, 3 Low
    MAX_ATTEMPTS: int = 3
    BACKOFF: Backoff = field(default_factory=Backoff)
    AGING: Aging = field(default_factory=Aging)

    # The worker
    CONCURRENCY: int = 10  # handlers running at once in one process
    GRACE: float = 30.0  # how long a stopping worker waits for running handlers
    CLAIM_BATCH: int = 400  # most jobs claimed in one statement
    UNKNOWN_TYPE_DELAY: float = 30.0  # how long a job of a type unknown to its worker is put back
    ISOLATION_MAX_JOBS: int | None = 100  # runs after which a child process gives way to a new one; None for no limit
    ISOLATION_MAX_MEMORY: int | None = 512  # MB of a child process after a run, beyond which it does so

    # Limits
    MAX_PAYLOAD_BYTES: int = 2 * 1024 * 1024
    MAX_RESULT_BYTES: int = 2 * 1024 * 1024
    MAX_ERROR_CHARACTERS: int = 20_000  # of an error, and of a traceback; longer ones are cut with a mark

    # History
    RETENTION: float = 0.0  # seconds after their end for which final jobs are kept; 0 for ever

    # REST
    API_KEYS: Mapping[str, str] = field(default_factory=dict)  # {name kept in the history: key}; none: all are refused
    IDEMPOTENCY_RETENTION: float = 86400.0  # how long a request with an Idempotency-Key may be repeated

    # Built-in handlers
    WEBHOOK_ALLOW_PRIVATE: bool = False  # may webhook_delivery connect to private addresses?
    LOG_DIRECTORIES: tuple[str, ...] = ()  # below which log_processing may read files

    @property
    def horizon(self) -> float:
        """How far ahead, in seconds, workers know what falls due: two polls, so that one may be late."""
        return 2 * self.POLL_INTERVAL


_MOST = 1_000_000_000  # as seconds 31 years, which every timer can still count; as bytes all that jsonb can hold


def _from(least: float) -> tuple[Callable[[Any], bool], str]:
    return lambda value: least <= value <= _MOST, f"use a number from {least:g} to {_MOST:,}."


def _none_or_from(least: float) -> tuple[Callable[[Any], bool], str]:
    fits, rule = _from(least)
    return lambda value: value is None or fits(value), f"{rule[:-1]}, or None for no limit."


def _are_api_keys(keys: Mapping[Any, Any]) -> bool:
    plain = all(isinstance(text, str) and text.isascii() and text.isprintable() for text in (*keys, *keys.values()))
    return plain and all(keys) and all(len(key) >= 16 for key in keys.values()) and len(set(keys.values())) == len(keys)


_BOUNDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "POLL_INTERVAL": _from(0.05),
    "SPOOL": (lambda value: not value or Path(value).is_absolute(), "use an absolute path, or '' for no spool."),
    "SPOOL_LIMIT": _from(1),
    "LEASE": _from(1),
    "SWEEP_INTERVAL": _from(0.1),
    "DEFAULT_QUEUE": (valid_name, NAME_RULE),
    "DEFAULT_PRIORITY": (valid_priority, PRIORITY_RULE),
    "MAX_ATTEMPTS": (valid_attempts, ATTEMPTS_RULE),
    "CONCURRENCY": _from(1),
    "GRACE": _from(0),
    "CLAIM_BATCH": (lambda value: 1 <= value <= 1000, "use a whole number from 1 to 1000."),
    "UNKNOWN_TYPE_DELAY": _from(0),
    "ISOLATION_MAX_JOBS": _none_or_from(1),
    "ISOLATION_MAX_MEMORY": _none_or_from(1),
    "MAX_PAYLOAD_BYTES": _from(2),
    "MAX_RESULT_BYTES": _from(2),
    "MAX_ERROR_CHARACTERS": _from(100),
    "API_KEYS": (
        _are_api_keys,
        "use a dict of {name: key}: for each name a key of its own, of at least 16 printable ASCII characters.",
    ),
    "RETENTION": _from(0),
    "IDEMPOTENCY_RETENTION": _from(1),
    "LOG_DIRECTORIES": (lambda value: all(isinstance(path, str) and path for path in value), "use a list of paths."),
}

_CHECKED_AS: dict[Any, type | tuple[type, ...]] = {
    float: (int, float),
    int | None: (int, NoneType),
    Mapping[str, str]: Mapping,
    tuple[str, ...]: (list, tuple),
}

_TYPES: dict[str, type | tuple[type, ...]] = {
    f.name: _CHECKED_AS.get(f.type, f.type)  # type: ignore[arg-type, misc]
    for f in dataclasses.fields(Settings)
}


def given() -> Any:
    """Return the `DILAMME` of the Django settings as it stands there, right or wrong."""
    return getattr(django_settings, "DILAMME", {})


def problems(raw: Any) -> list[str]:
    """Return what is wrong with a `DILAMME` dict: a sentence each, naming the setting, its value and the way out."""
    if not isinstance(raw, Mapping):
        return [f"DILAMME is of type {type(raw).__name__}; it must be a dict of settings."]
    found = []
    for name, value in raw.items():
        shown = "(hidden)" if name == "API_KEYS" else repr(value)
        if name not in _TYPES:
            known = ", ".join(sorted(_TYPES))
            found.append(f"DILAMME has no setting {name!r}. Remove it, or use one of: {known}.")
        elif not isinstance(value, _TYPES[name]) or (isinstance(value, bool) and _TYPES[name] is not bool):
            found.append(f"DILAMME[{name!r}] is {shown}; it must be {_describe(_TYPES[name])}.")
        elif name in _BOUNDS and not _BOUNDS[name][0](value):
            found.append(f"DILAMME[{name!r}] is {shown}; {_BOUNDS[name][1]}")
    return found


def _describe(types: type | tuple[type, ...]) -> str:
    return " or ".join(
        "None" if t is NoneType else t.__name__ for t in (types if isinstance(types, tuple) else (types,))
    )


class _Current:
    """The settings in force: `settings.LEASE` and so on, built on first use and again after an override."""

    def __init__(self) -> None:
        self._built: Settings | None = None
        setting_changed.connect(self._forget)

    def _forget(self, *, setting: str, **_: Any) -> None:
        if setting == "DILAMME":
            self._built = None

    def get(self) -> Settings:
        """Return the whole of them; `ConfigurationError` lists every mistake."""
        if (built := self._built) is None:
            raw = given()
            if wrong := problems(raw):
                raise ConfigurationError(" ".join(wrong))
            self._built = built = Settings(**raw)
        return built

    def __getattr__(self, name: str) -> Any:
        return getattr(self.get(), name)


_current = _Current()
settings = cast("Settings", _current)  # read like one, checked like one


def current() -> Settings:
    """Return all settings in force at once, for who reads several of them often."""
    return _current.get()
