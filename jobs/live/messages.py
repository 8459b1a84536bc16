"""The words between those who change jobs and those who watch, small enough for a notification.

A message is JSON: `{"jobs": [[id, status, attempt], ...], "complete": true}`. `complete: false` says that more moved
than is listed, and that a view should look for itself.
"""

import json
from collections.abc import Sequence

from jobs.signals import Change

_PER_MESSAGE = 100  # about 60 bytes each; PostgreSQL takes 7,999 a notification


def encode(changes: Sequence[Change], *, complete: bool = True) -> list[str]:
    """Return the messages for these changes, each below PostgreSQL's limit."""
    rows = [[str(change.job_id), change.status, change.attempt] for change in changes]
    chunks = [rows[i : i + _PER_MESSAGE] for i in range(0, len(rows), _PER_MESSAGE)] or [[]]
    return [json.dumps({"jobs": chunk, "complete": complete}, separators=(",", ":")) for chunk in chunks]
