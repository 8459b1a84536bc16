"""Parameters as PostgreSQL reads them: every value comes back from the server as it was."""

import math
import uuid
from datetime import UTC, datetime, timedelta, timezone

import pytest
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobs.literals import array, text_of
from jobs.states import OnFailure

pytestmark = pytest.mark.django_db(transaction=True)

texts = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]))
times = st.datetimes(datetime(1900, 1, 1), datetime(9000, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001  hypothesis'
VALUES = {
    "text[]": texts,
    "int[]": st.integers(-(2**31), 2**31 - 1),
    "bigint[]": st.integers(-(2**63), 2**63 - 1),
    "float8[]": st.floats(allow_nan=False),
    "bool[]": st.booleans(),
    "uuid[]": st.uuids(),
    "timestamptz[]": times,
}


def sent(values: list, kind: str) -> list:
    """Send an array to the server and return what it understood."""
    with connection.cursor() as cursor:
        cursor.execute(f"select %s::{kind}", [array(values)])
        return cursor.fetchone()[0]


@pytest.mark.parametrize("kind", VALUES)
@given(data=st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_arrays_arrive_as_they_were(kind: str, data: st.DataObject):
    """Whatever the elements are, with nulls among them and without."""
    elements = VALUES[kind] if kind == "uuid[]" else st.none() | VALUES[kind]
    values = data.draw(st.lists(elements, max_size=20))
    assert sent(values, kind) == values


@pytest.mark.parametrize("text", ["", "null", "NULL", '"', "\\", "{}", ",", " a ", "a,b", '\\"', "\n\t", "ü€🙂"])
def test_texts_that_look_like_syntax_are_texts(text: str):
    """Quotes, braces, commas and the word null mean nothing inside an element."""
    assert sent([text, None, text], "text[]") == [text, None, text]


def test_only_nulls_are_an_array_of_any_type():
    """Their number is kept."""
    assert sent([None, None], "jsonb[]") == [None, None]
    assert sent([], "uuid[]") == []


def test_floats_that_are_no_numbers_are_known_to_the_server():
    """As PostgreSQL writes them."""
    assert math.isnan(sent([math.nan], "float8[]")[0])
    assert sent([math.inf, -math.inf], "float8[]") == [math.inf, -math.inf]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        ("null", b"null"),
        ('a "b"', b'a "b"'),
        (OnFailure.RUN, b"run"),
        (5, b"5"),
        (True, b"True"),
        (0.1, b"0.1"),
        (uuid.UUID(int=1), b"0" * 31 + b"1"),
        (["a", None], b'{"a",NULL}'),
        ([uuid.UUID(int=0), None], b"{" + b"0" * 32 + b",NULL}"),
        ([OnFailure.RUN], b'{"run"}'),
        (datetime(2030, 1, 2, tzinfo=timezone(timedelta(hours=2))), b"2030-01-02T00:00:00+02:00"),
    ],
)
def test_a_lone_value_is_written_plainly(value: object, text: bytes | None):
    """Without the quotes that an array needs."""
    assert text_of(value) == text


@pytest.mark.parametrize("value", [b"bytes", {"a": 1}, object(), [b"bytes"]])
def test_what_has_no_writer_is_named(value: object):
    """Rather than sent as something else."""
    with pytest.raises(TypeError, match=r"An array of (bytes|dict|object) has no literal here"):
        text_of(value)
