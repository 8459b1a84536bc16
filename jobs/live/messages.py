"""The words between those who change jobs and those who watch: what a notification says, and what a browser may ask.

A notification is JSON, `{"ids": [...], "complete": true}`. It names the jobs that moved and not where to: two messages
may overtake each other, so that a view reads from the database what is true now. `complete: false` says that more moved
than is named. Nothing here sends or stores.
"""

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jobs.signals import Change

KEPT = 1000  # jobs named between two looks; beyond that watchers are told to look for themselves
WATCHED = 200  # jobs that one browser may watch
_PER_MESSAGE = 200  # 39 bytes each; PostgreSQL takes 7,999 a notification
_LONGEST_REQUEST = 16 * 1024  # characters; a full request has about 8,000


@dataclass(frozen=True, slots=True)
class Moved:
    """The jobs that moved, and whether those are all."""

    ids: Sequence[str] = ()
    complete: bool = True


def encode(changes: Sequence[Change], *, complete: bool = True) -> list[str]:
    """Return the notifications for these changes, each below PostgreSQL's limit."""
    ids = list(dict.fromkeys(str(change.job_id) for change in changes))
    chunks = [ids[i : i + _PER_MESSAGE] for i in range(0, len(ids), _PER_MESSAGE)] or [[]]
    return [json.dumps({"ids": chunk, "complete": complete}, separators=(",", ":")) for chunk in chunks]


def decode(notification: str) -> Moved:
    """Return what a notification says. What cannot be read, perhaps a newer format, may concern any job."""
    match _parsed(notification):
        case {"ids": list(ids), "complete": bool(complete)} if all(isinstance(id_, str) for id_ in ids):
            return Moved(ids, complete)
    return Moved(complete=False)


def watched(request: str | None) -> frozenset[str] | None:
    """Return the ids that a browser wants to watch, `{"watch": [...]}`; None when that is not what it says."""
    if request is None or len(request) > _LONGEST_REQUEST:
        return None
    match _parsed(request):
        case {"watch": list(ids)} if len(ids) <= WATCHED and all(isinstance(id_, str) for id_ in ids):
            return _canonical(ids)
    return None


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _canonical(ids: Sequence[str]) -> frozenset[str] | None:
    try:
        return frozenset(str(uuid.UUID(id_)) for id_ in ids)
    except ValueError:
        return None
