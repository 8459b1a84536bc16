"""Does a transaction again that met others: a deadlock, or a unique key that was taken a moment ago.

Several jobs are locked in ascending id wherever that can be; where it cannot, PostgreSQL ends one of two transactions
that wait for each other, and nothing of it has happened.
"""

import logging
import random
import time
from collections.abc import Callable
from typing import TypeVar

from django.db import DatabaseError

logger = logging.getLogger("dilamme")

_TRIES = 8
_CONFLICTS = ("40P01", "40001", "23505")  # deadlock, serialisation failure, unique violation

T = TypeVar("T")


def patiently(action: Callable[[], T]) -> T:
    """Return what a transaction returns; raises Django's DatabaseError when it meets others for ever."""
    for tried in range(1, _TRIES):
        try:
            return action()
        except DatabaseError as error:
            if getattr(error.__cause__, "sqlstate", None) not in _CONFLICTS:
                raise
            logger.info("A transaction met others and is tried again: %s", error)
            time.sleep(random.random() * 0.01 * 2**tried)  # noqa: S311  spreads those that met
    return action()
