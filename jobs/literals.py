"""Writes parameters as PostgreSQL reads them: the statements here take whole batches, and cast what they are given.

The driver's own encoding of lists asks of every single element what it is. One look at the first is enough where all
are alike, and a join does the rest.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID


def text_of(value: Any) -> bytes | None:
    """Return a parameter in the server's text format, None for null; raises TypeError for what it does not know."""
    if value is None:
        return None
    kind = type(value)
    if kind is list:
        return array(value).encode()
    if issubclass(kind, str):  # which is quoted in arrays only
        return str.encode(value)
    return (_WRITERS.get(kind) or _writer_of_base(kind))(value).encode()


def array(values: Sequence[Any]) -> str:
    """Return the text of a one-dimensional array whose elements are None or all of one type.

    Knows UUID, int, float, bool, str and aware datetime; raises TypeError for others. Texts contain no NUL.
    """
    kind = next((type(value) for value in values if value is not None), None)
    if kind is None:
        return "{" + ",".join(["NULL"] * len(values)) + "}"
    write = _WRITERS.get(kind) or _writer_of_base(kind)
    # Every id is true, which is told in C; `in` would compare each by Python code.
    if not all(values) if kind is UUID else None in values:
        return "{" + ",".join("NULL" if value is None else write(value) for value in values) + "}"
    return "{" + ",".join(map(write, values)) + "}"


def _writer_of_base(kind: type) -> Callable[[Any], str]:
    """Return how a subclass of a known type is written, such as a member of an enumeration of texts."""
    for known, write in _WRITERS.items():
        if issubclass(kind, known):
            return write
    raise TypeError(f"An array of {kind.__name__} has no literal here; add a writer to jobs.literals.")


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


_WRITERS: dict[type, Callable[[Any], str]] = {
    UUID: lambda value: "%032x" % value.int,  # noqa: UP031  half the time of an f-string's format
    int: str,
    float: repr,
    bool: str,
    str: _quoted,
    datetime: datetime.isoformat,
}
