"""Turns values from user code into what PostgreSQL can store, or says exactly why it cannot.

`text` never fails: errors and tracebacks must always land. `json_text` is strict and never alters a value: a payload
or a result is stored as it is or refused, with the place named. (As in all JSON a tuple is a list; and jsonb gives a
float from 1e16 up back as the int of the same digits.) Nothing here touches the database.
"""

import json
import math
import re
from typing import Any

_encode = json.JSONEncoder(allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_REPLACEMENT = "\ufffd"
_DEPTH_LIMIT = 100  # far below what json, pydantic and PostgreSQL can each take, whose limits depend on the stack
_SCALARS = (str, int, float, bool, type(None))


class NotStorable(ValueError):
    """The value is no JSON that PostgreSQL can store; the text names the place and the reason."""


def text(value: str, limit: int) -> str:
    """Return `value` without NUL and lone surrogates (each becomes U+FFFD), cut to `limit` characters with a mark."""
    clean = _UNSTORABLE.sub(_REPLACEMENT, value)
    if len(clean) <= limit:
        return clean
    mark = f" ... [{len(clean) - limit} characters cut] ... "
    head = limit * 2 // 3
    return clean[:head] + mark + clean[len(clean) - (limit - head) :]


def json_text(value: Any, limit: int, name: str) -> str:
    """Return `value` as JSON text of at most `limit` bytes; `NotStorable` calls the value `name`."""
    try:
        encoded = _encode(value)
        size = len(encoded.encode())
    except (TypeError, ValueError, RecursionError) as error:
        raise NotStorable(_complaint(value, name) or f"{name} is not JSON: {error}") from None
    # json writes a key 1 as "1", and knows nothing of what PostgreSQL cannot store.
    suspicious = "\\u0000" in encoded or not _is_plain(value)
    if suspicious and (complaint := _complaint(value, name)):
        raise NotStorable(complaint)
    if size > limit:
        way_out = "keep large data in a file or a table and pass its name or id"
        raise NotStorable(f"{name} is {size:,} bytes of JSON; at most {limit:,} are stored: {way_out}.")
    return encoded


def _is_plain(value: Any) -> bool:
    """Whether a value without cycles is made of exact JSON types and not too deep: a cheap look, level by level."""
    level = [value]
    for _ in range(_DEPTH_LIMIT + 1):
        below: list[Any] = []
        for item in level:
            kind = type(item)
            if kind is dict and all(type(key) is str for key in item):
                below += item.values()
            elif kind is list:
                below += item
            elif kind not in _SCALARS:
                return False
        if not below:
            return True
        level = below
    return False


def _complaint(value: Any, path: str, depth: int = 0) -> str:  # noqa: PLR0911  one answer for each kind
    """Return what is wrong with the first unstorable part of `value`, or an empty string."""
    if depth > _DEPTH_LIMIT:
        return f"{path} is nested more than {_DEPTH_LIMIT} levels deep; flatten it."
    match value:
        case None | bool() | int():
            return ""
        case float():
            fine = math.isfinite(value)
            return "" if fine else f"{path} is {value}, which JSON cannot express; use None or a string."
        case str():
            return _text_complaint(value, path)
        case dict():
            parts = [(key, f"{path}.{key}", item) for key, item in value.items()]
            for key, _, _ in parts:
                if not isinstance(key, str):
                    return f"{path} has the key {key!r} of type {type(key).__name__}; JSON keys are strings."
            checks = (_text_complaint(k, f"a key of {path}") or _complaint(v, p, depth + 1) for k, p, v in parts)
            return next(filter(None, checks), "")
        case list() | tuple():
            return next(filter(None, (_complaint(v, f"{path}[{i}]", depth + 1) for i, v in enumerate(value))), "")
        case _:
            kinds = "None, bool, int, float, str, list and dict"
            return f"{path} is of type {type(value).__name__}, which is not JSON; use {kinds}."


def _text_complaint(value: str, path: str) -> str:
    if not (found := _UNSTORABLE.search(value)):
        return ""
    what = "a NUL character" if found.group() == "\x00" else "half of a surrogate pair"
    return f"{path} contains {what} at position {found.start()}, which PostgreSQL cannot store; remove it."
