"""Tells those who watch what operators did, over the connection of the request, after its commit.

Workers have a broadcaster of their own. This never fails a request: what cannot be sent is logged and forgotten.
"""

import logging
from collections.abc import Sequence
from typing import Any

from django.db import Error

from jobs.live.messages import KEPT, encode
from jobs.queries import DjangoSession
from jobs.signals import ByOperator, Change, jobs_changed

logger = logging.getLogger("dilamme.live")


def connect() -> None:
    """Publish from now on; connecting twice is once."""
    jobs_changed.connect(publish, sender=ByOperator, dispatch_uid="dilamme.live.publish")


def publish(changes: Sequence[Change], **_: Any) -> None:
    """Send the notifications for these changes."""
    messages = encode(changes) if len(changes) <= KEPT else encode((), complete=False)
    try:
        DjangoSession().fetch("publish", messages=messages)
    except Error as error:
        logger.warning("%s changes were not shown live: %s", len(changes), " ".join(str(error).split()))
