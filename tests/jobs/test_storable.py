"""What PostgreSQL can store: texts that always land, and JSON that is kept exactly or refused with its place."""

import enum
import json
import math
from typing import Any

import psycopg
import pytest
from django.db import connection
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jobs.queries import connect
from jobs.storable import NotStorable, json_text, text

MEGABYTE = 1_000_000

# Any code point, lone surrogates and NUL included.
any_text = st.text(st.characters(exclude_categories=()) | st.sampled_from("\x00\ud800\udfff\\u0"))
scalars = st.none() | st.booleans() | st.integers() | st.floats() | any_text
anything = st.recursive(
    scalars | st.binary(max_size=3) | st.dates(),
    lambda inner: st.lists(inner) | st.tuples(inner) | st.dictionaries(any_text | st.integers() | st.none(), inner),
    max_leaves=20,
)


@pytest.fixture(scope="module")
def stored(django_db_setup: None) -> Any:
    """Write a value into PostgreSQL and return what it has become there."""
    with connect() as database:
        database.execute("create temp table kept (t text, j jsonb)")

        def keep(column: str, value: str) -> Any:
            with database.transaction(force_rollback=True):
                database.execute(f"insert into kept ({column}) values (%s)", [value])
                ((found,),) = database.execute(f"select {column}::text from kept").fetchall()
                return found

        yield keep


# Texts


@given(value=any_text, limit=st.integers(0, 50))
@example(value="\x00\ud800ok", limit=10)
@settings(deadline=None)
def test_any_text_lands(stored: Any, value: str, limit: int) -> None:
    """Whatever a handler raises, its text can be stored, and comes back as it went in."""
    clean = text(value, limit)
    assert stored("t", clean) == clean


@given(value=st.text(max_size=50))
def test_a_legal_text_within_the_limit_is_kept_exactly(value: str) -> None:
    """Nothing is changed that need not be."""
    legal = value.replace("\x00", "")
    assert text(legal, 50) == legal


def test_what_cannot_be_stored_is_replaced_one_by_one() -> None:
    """NUL and half a surrogate pair each become one replacement character; a whole pair is left alone."""
    assert text("a\x00b\ud800c\udfffd\U0001f600", 100) == "a\ufffdb\ufffdc\ufffdd\U0001f600"


def test_a_long_text_keeps_both_ends() -> None:
    """The beginning and the end of an error say most; the mark tells how much is missing."""
    assert text("a" * 100 + "b" * 100, 30) == "a" * 20 + " ... [170 characters cut] ... " + "b" * 10


# JSON


@given(value=anything)
@example(value={"a": [1e22, -0.0, 5e-324, 2**80, 4.947854320945191e16, "\\u0000", "\U0001f600", ""]})
@settings(deadline=None, max_examples=300)
def test_what_is_accepted_is_stored_and_equal(stored: Any, value: Any) -> None:
    """Nothing is accepted that PostgreSQL refuses or changes."""
    try:
        accepted = json_text(value, MEGABYTE, "value")
    except NotStorable as refusal:
        assert str(refusal).startswith(("value", "a key of value"))  # noqa: PT017  both ends are right
    else:
        assert _same(json.loads(stored("j", accepted)), value)


def _same(found: Any, value: Any) -> bool:
    """Whether JSON and jsonb have kept the value: tuples are lists there, and 1e16 is 10000000000000000."""
    if isinstance(value, dict):
        return found.keys() == value.keys() and all(_same(found[key], item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return len(found) == len(value) and all(map(_same, found, value))
    if isinstance(value, float):
        return float(found) == value
    return type(found) is type(value) and found == value


@given(value=st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=10))
def test_plain_json_is_accepted(value: Any) -> None:
    """Nothing is refused without a reason."""
    assert "\x00" in str(value) or r"\x00" in str(value) or json_text(value, MEGABYTE, "value")


class Colour(enum.StrEnum):
    """A str that is more than that."""

    RED = "red"


def test_subclasses_are_stored_as_what_they_are_in_json() -> None:
    """A StrEnum or an IntEnum has one JSON form, and loses nothing that JSON could keep."""
    assert json_text({"c": Colour.RED, "n": enum.IntEnum("Number", "ONE").ONE}, 100, "result") == '{"c":"red","n":1}'


def _nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def _circular() -> Any:
    value: list[Any] = []
    value += [value, value]
    return value


NUL = "contains a NUL character at position {}, which PostgreSQL cannot store; remove it."
HALF = "contains half of a surrogate pair at position {}, which PostgreSQL cannot store; remove it."
KINDS = "which is not JSON; use None, bool, int, float, str, list and dict."

REFUSED = [
    ({"a": [1, {"b": math.nan}]}, "result.a[1].b is nan, which JSON cannot express; use None or a string."),
    (math.inf, "result is inf, which JSON cannot express; use None or a string."),
    ([-math.inf], "result[0] is -inf, which JSON cannot express; use None or a string."),
    ({"a": "b\x00"}, f"result.a {NUL.format(1)}"),
    ({"a": {"\x00": 1}}, f"a key of result.a {NUL.format(0)}"),
    (("x", "\ud800"), f"result[1] {HALF.format(0)}"),
    ({"ab\udfff": 1}, f"a key of result {HALF.format(2)}"),
    ({"a": {1, 2}}, f"result.a is of type set, {KINDS}"),
    (b"x", f"result is of type bytes, {KINDS}"),
    (object, f"result is of type type, {KINDS}"),
    ({1: "a"}, "result has the key 1 of type int; JSON keys are strings."),
    ({"a": {None: 1}}, "result.a has the key None of type NoneType; JSON keys are strings."),
    ({("a", "b"): 1}, "result has the key ('a', 'b') of type tuple; JSON keys are strings."),
    (_nested(102), f"result{'[0]' * 101} is nested more than 100 levels deep; flatten it."),
    (_nested(5000), f"result{'[0]' * 101} is nested more than 100 levels deep; flatten it."),
    (_circular(), f"result{'[0]' * 101} is nested more than 100 levels deep; flatten it."),
]


@pytest.mark.parametrize(("value", "complaint"), REFUSED, ids=[complaint[:40] for _, complaint in REFUSED])
def test_a_refusal_names_the_place_and_the_way_out(value: Any, complaint: str) -> None:
    """The reader finds the one bad value in a large one."""
    with pytest.raises(NotStorable) as caught:
        json_text(value, MEGABYTE, "result")
    assert str(caught.value) == complaint


def test_the_deepest_that_is_accepted_is_stored(stored: Any) -> None:
    """A hundred levels are within what every reader of the row can take."""
    accepted = json_text(_nested(100), MEGABYTE, "value")
    assert json.loads(stored("j", accepted)) == _nested(100)


def test_an_integer_too_long_to_print_is_refused() -> None:
    """Python itself refuses to write it; the text says so."""
    with pytest.raises(NotStorable, match="result is not JSON: Exceeds the limit"):
        json_text(10**5000, MEGABYTE, "result")


@pytest.mark.parametrize("value", ["x" * 8, "\u20ac\u20acx"])
def test_the_limit_counts_bytes_and_is_kept_exactly(value: str) -> None:
    """Ten bytes of JSON fit into ten; the eleventh does not."""
    size = len(json.dumps(value, ensure_ascii=False).encode())
    assert json_text(value, size, "payload")
    with pytest.raises(NotStorable) as caught:
        json_text(value, size - 1, "payload")
    assert str(caught.value) == (
        f"payload is {size} bytes of JSON; at most {size - 1} are stored: keep large data in a file or a table and "
        f"pass its name or id."
    )


@pytest.mark.django_db
def test_what_is_refused_is_what_postgresql_refuses() -> None:
    """The rules are PostgreSQL's, not invented: it takes neither NUL nor half a surrogate pair."""
    for bad in (r'"\u0000"', r'"\ud800"'):
        with pytest.raises(psycopg.DataError), connect() as database:
            database.execute("select %s::jsonb", [bad])
    assert connection.vendor == "postgresql"
