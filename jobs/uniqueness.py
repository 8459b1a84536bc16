"""Unique keys: how one is made from a payload, and what a job says of its own.

The database keeps them unique (`dilamme_job_unique_key`); what an enqueue does that meets another job with its key is
decided in `jobs.enqueueing`. Nothing here touches the database.
"""

import hashlib
import json
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from jobs.errors import InvalidJob
from jobs.limits import KEY_RULE, valid_key
from jobs.states import OnConflict, UniqueScope

_SCOPES, _CONFLICTS = tuple(UniqueScope.values), tuple(OnConflict.values)


class Uniqueness(NamedTuple):
    """That at most one job with a key is to wait, or to wait or run, at a time."""

    key: str | None  # None: made from the payload
    names: tuple[str, ...]
    scope: UniqueScope
    on_conflict: OnConflict

    def key_of(self, type_: str, payload: Mapping[str, Any]) -> str:
        """Return the key of a job; raises `InvalidJob` for a name that the payload does not have.

        The order of names and keys does not matter, and equal values give equal keys.
        """
        if self.key is not None:
            return self.key
        if missing := [name for name in self.names if name not in payload]:
            known = ", ".join(payload) or "nothing"
            raise InvalidJob(
                f"unique names {missing[0]!r}, which the payload does not have; it has {known}.", field="unique"
            )
        chosen = json.dumps({name: payload[name] for name in self.names}, sort_keys=True, separators=(",", ":"))
        return f"{type_}:{hashlib.sha256(chosen.encode()).hexdigest()}"


def uniqueness_of(key: Any, names: Collection[str], scope: str, on_conflict: str) -> Uniqueness | None:
    """Return what these options of a job mean, checked; None if they ask for nothing."""
    if key is None and not names:
        return None
    if key is not None and names:
        raise InvalidJob("unique_key and unique are both given; use one of them.", field="unique_key")
    if key is not None and not valid_key(key):
        raise InvalidJob(f"unique_key is {key!r:.100}; {KEY_RULE}", field="unique_key")
    if isinstance(names, str) or not (isinstance(names, Collection) and all(isinstance(name, str) for name in names)):
        raise InvalidJob(f"unique is {names!r}; use a list of names of the payload.", field="unique")
    if scope not in _SCOPES:
        raise InvalidJob(f"unique_scope is {scope!r}; use {' or '.join(_SCOPES)}.", field="unique_scope")
    if on_conflict not in _CONFLICTS:
        raise InvalidJob(f"on_conflict is {on_conflict!r}; use {', '.join(_CONFLICTS)}.", field="on_conflict")
    return Uniqueness(key, tuple(sorted(set(names))), UniqueScope(scope), OnConflict(on_conflict))
