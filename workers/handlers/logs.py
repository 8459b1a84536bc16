"""Turns a log into a report: how many lines of each level, the most frequent errors, the share of errors.

It reads line by line in constant memory, and it alone decides which files may be read: payloads arrive over
the network, so a path counts for nothing until the settings allow its directory. It never writes, and never
waits for a log to grow.
"""

import re
import stat
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

from jobs.conf import settings
from workers.handlers.errors import LogPathForbidden, LogUnparseable, LogUnreadable, UnusableArgument

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
MAX_LINE_BYTES = 64 * 1024  # what is longer is cut
MAX_MESSAGE_CHARACTERS = 500  # messages that agree in these count as one
MAX_MESSAGES = 10_000  # different messages counted at once
MAX_TOP = 100

_ALIASES = {"WARN": "WARNING", "FATAL": "CRITICAL"}
_ERROR_LEVELS = frozenset({"ERROR", "CRITICAL"})
_LEVEL = "|".join([*LEVELS, *_ALIASES])
_LINE = re.compile(
    rf"""
    \d{{4}}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])       # date
    [T\ ](?:[01]\d|2[0-3]):[0-5]\d:(?:[0-5]\d|60)           # time, with the leap second
    (?:[.,]\d+)?                                            # fraction
    (?:\ ?(?:Z|[+-]\d\d(?::?\d\d)?))?                       # zone
    \s+(?:(?P<level>{_LEVEL})|\[\s*(?P<boxed>{_LEVEL})\s*])
    \s+(?P<message>.+)
    """,
    re.VERBOSE | re.IGNORECASE | re.ASCII | re.DOTALL,
)


def log_processing(
    path: str | None = None, text: str | None = None, source: str | None = None, top: int = 5
) -> dict[str, Any]:
    """Report on the log in the file `path` or in `text`: exactly one of them, as UTF-8.

    A line reads `<ISO 8601 timestamp> <LEVEL> <message>`; blank lines do not count. Returns `source` (what
    `source` says, else the path, else "text"), `total_lines`, `parsed_lines`, `parse_errors`, `level_counts`
    (all five levels), `top_errors` (up to `top` of {message, count} from ERROR and CRITICAL, most frequent
    first, then first seen), `has_critical` and `error_rate_pct` (of the parsed lines, two decimals). Up to
    10,000 different errors the counts are exact. Raises `UnusableArgument` or a `LogError`.
    """
    if not 1 <= top <= MAX_TOP:
        raise UnusableArgument(f"top is {top}; ask for 1 to {MAX_TOP} messages.")
    tally = Tally()
    if path is not None and text is None:
        with _opened(path) as stream:
            tally.read(stream)
    elif text is not None and path is None:
        tally.read(BytesIO(text.encode("utf-8", "replace")))
    else:
        given = "neither path nor text is" if path is None else "both path and text are"
        raise UnusableArgument(f"{given} given; give exactly one of them.")
    return tally.report(source or path or "text", top)


class Tally:
    """Counts lines by level, and error messages by how often they occur."""

    def __init__(self) -> None:
        self.total = 0
        self.levels: Counter[str] = Counter()
        self.errors: Counter[str] = Counter()

    def read(self, stream: BinaryIO) -> None:
        """Count every line of `stream`."""
        for line in _lines(stream):
            self.total += 1
            if found := _LINE.fullmatch(line):
                level = (found["level"] or found["boxed"]).upper()
                self.count(_ALIASES.get(level, level), found["message"])

    def count(self, level: str, message: str) -> None:
        """Count one parsed line."""
        self.levels[level] += 1
        if level in _ERROR_LEVELS:
            self.errors[message[:MAX_MESSAGE_CHARACTERS]] += 1
            if len(self.errors) > MAX_MESSAGES:
                self._forget_rarest()

    def report(self, source: str, top: int) -> dict[str, Any]:
        """Return the result of `log_processing`; raises `LogUnparseable` if no line was parsed."""
        parsed = self.levels.total()
        if not parsed:
            raise LogUnparseable(
                f"None of the {self.total} lines of {source!r} is a log line; expected "
                '"2025-01-31T12:00:00Z ERROR message", with one of the levels ' + ", ".join(LEVELS) + "."
            )
        failed = sum(self.levels[level] for level in _ERROR_LEVELS)
        return {
            "source": source,
            "total_lines": self.total,
            "parsed_lines": parsed,
            "parse_errors": self.total - parsed,
            "level_counts": {level: self.levels[level] for level in LEVELS},
            "top_errors": [{"message": text, "count": n} for text, n in self.errors.most_common(top)],
            "has_critical": self.levels["CRITICAL"] > 0,
            "error_rate_pct": round(100 * failed / parsed, 2),
        }

    def _forget_rarest(self) -> None:
        # As in lossy counting (Manku and Motwani, 2002): what is frequent survives every such cut.
        rarest = min(self.errors.values())
        self.errors = Counter({text: n for text, n in self.errors.items() if n > rarest})


def _lines(stream: BinaryIO) -> Iterator[str]:
    """Yield the lines that are not blank, stripped and cut, whatever bytes they are made of."""
    while raw := stream.readline(MAX_LINE_BYTES):
        # PostgreSQL stores no NUL, and the message of this line may become part of a result.
        line = raw.decode("utf-8", "replace").replace("\0", "\ufffd").removeprefix("\ufeff").strip()
        if line:
            yield line
        while raw and not raw.endswith(b"\n"):
            raw = stream.readline(MAX_LINE_BYTES)


@contextmanager
def _opened(path: str) -> Iterator[BinaryIO]:
    allowed = _allowed(path)
    try:
        if not stat.S_ISREG(allowed.stat().st_mode):
            kind = "a directory" if allowed.is_dir() else "a device, a pipe or a socket"
            raise LogUnreadable(f"The log {path!r} is {kind}; give the path of a regular file.")
        with allowed.open("rb") as stream:
            yield stream
    except OSError as error:
        raise LogUnreadable(
            f"The log {path!r} cannot be read: {error.strerror}. Check the path, and that the user who runs "
            "the worker may read it."
        ) from error


def _allowed(path: str) -> Path:
    """Return the real path of `path`, links followed, if the settings allow to read it."""
    try:
        real = Path(path).resolve()
        directories = [Path(directory).resolve() for directory in settings.LOG_DIRECTORIES]
    except (OSError, RuntimeError, ValueError) as error:
        raise LogUnreadable(f"{path!r} is no usable path: {error}. Correct it.") from None
    # The same words whether the file exists or not: a payload must not be able to ask.
    if not any(real.is_relative_to(directory) for directory in directories):
        raise LogPathForbidden(
            f"The log {path!r} is not below a directory that jobs may read (allowed: "
            f"{', '.join(map(str, directories)) or 'none'}). Pass the log as text, or add its directory to "
            'DILAMME["LOG_DIRECTORIES"].'
        )
    return real
