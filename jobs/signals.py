"""What happened to jobs, said once, after the commit: the live views listen here, and whoever else wants to know.

Listeners get whole batches, and none of them can slow, fail or roll back a job: an exception in one is logged and
goes no further.
"""

import logging
import uuid
from collections.abc import Sequence
from typing import NamedTuple

from django.dispatch import Signal

logger = logging.getLogger("dilamme")

jobs_changed = Signal()  # sender: Origin class; changes: Sequence[Change]


class Change(NamedTuple):
    """One job moved: where it stands now, and what moved it."""

    job_id: uuid.UUID
    status: str  # a states.Status
    kind: str  # a states.EventKind
    attempt: int
    type: str = ""
    queue: str = ""
    error: str = ""


class ByWorker:
    """Sender of changes made by a worker's loop."""


class ByOperator:
    """Sender of changes made by a person or a program through a face."""


def announce(sender: type[ByWorker | ByOperator], changes: Sequence[Change]) -> None:
    """Tell the listeners; call it after the commit."""
    if not changes:
        return
    for receiver, answer in jobs_changed.send_robust(sender, changes=changes):
        if isinstance(answer, Exception):
            logger.warning("A listener for job changes failed: %r: %s", receiver, answer)
