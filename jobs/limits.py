"""What the parts of a job may be: each rule once, as a test and as the words with which a refusal ends.

Settings, declarations, enqueueing and REST ask here. PostgreSQL repeats the ranges as constraints of its own.
"""

import re
from datetime import UTC, datetime
from typing import Any

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]*")
NAME_LIMIT = 100
NAME_RULE = f"use 1 to {NAME_LIMIT} letters, digits, and . _ : - inside it."

HIGH, LOW = 1, 3
PRIORITY_RULE = f"use a number from {HIGH} (High) to {LOW} (Low)."

ATTEMPTS_LIMIT = 1000
ATTEMPTS_RULE = f"use a whole number from 1 to {ATTEMPTS_LIMIT}."

DEPENDENCY_LIMIT = 10_000
WORKFLOW_LIMIT = 10_000  # jobs made in one graph

KEY_LIMIT = 200  # characters of a unique key, and of a concurrency key
KEY_RULE = f"use 1 to {KEY_LIMIT} printable characters."

METADATA_LIMIT = 8 * 1024  # bytes of JSON
METADATA_RULE = f"use a JSON object of at most {METADATA_LIMIT:,} bytes."

TIMEOUT_LIMIT = 366 * 24 * 3600  # seconds
TIMEOUT_RULE = f"use seconds above 0, at most {TIMEOUT_LIMIT:,}."

# Away from both ends of the calendar, so that every time zone can show what is stored.
EARLIEST, LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9998, 12, 31, tzinfo=UTC)
TIME_RULE = f"use a time from {EARLIEST:%Y-%m-%d} to {LATEST:%Y-%m-%d}."


def valid_name(value: Any) -> bool:
    """Whether `value` may name a type or a queue."""
    return isinstance(value, str) and len(value) <= NAME_LIMIT and NAME.fullmatch(value) is not None


def valid_priority(value: Any) -> bool:
    """Whether `value` is a priority; NaN is none."""
    return isinstance(value, int | float) and not isinstance(value, bool) and HIGH <= value <= LOW


def valid_attempts(value: Any) -> bool:
    """Whether `value` may be a job's `max_attempts`."""
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= ATTEMPTS_LIMIT


def valid_key(value: Any) -> bool:
    """Whether `value` may be a unique key or a concurrency key."""
    return isinstance(value, str) and 0 < len(value) <= KEY_LIMIT and value.isprintable()


def valid_timeout(value: Any) -> bool:
    """Whether a run may be given so many seconds."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= TIMEOUT_LIMIT
