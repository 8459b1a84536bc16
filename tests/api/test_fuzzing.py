"""Whatever a client sends, the answer is in the envelope, is no server error, and speaks of no database."""

import json
import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from jobs.api.schemas import Name
from jobs.limits import valid_name
from tests.api.answers import JOBS, WORKFLOWS, read

pytestmark = pytest.mark.django_db

DATABASE_WORDS = re.compile(r"psycopg|relation \"|column \"|dilamme_|Traceback|DETAIL|LINE 1")


def post(api: Client, body: bytes) -> Any:
    """Post a body as it is."""
    return api.post(JOBS, body, content_type="application/json")


any_text = st.text(st.characters(exclude_categories=()) | st.sampled_from("\x00\ud800"), max_size=20)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | any_text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(any_text, inner, max_size=4),
    max_leaves=8,
)
times = st.datetimes(timezones=st.timezones()).map(str) | st.datetimes().map(str)
likely = {
    "payload": st.dictionaries(any_text, json_values, max_size=4) | json_values,
    "queue": any_text | st.just("q"),
    "priority": st.floats() | st.integers(0, 4) | json_values,
    "scheduled_at": times | any_text | st.floats() | st.integers(),
    "dependency_ids": st.lists(st.uuids().map(str) | json_values, max_size=3) | json_values,
    "on_failure": st.sampled_from(["cancel", "run", "x"]),
    "max_attempts": st.integers() | json_values,
    "timeout": st.floats() | json_values,
    "expires_at": times | json_values,
    "unique_key": any_text | st.just("k") | json_values,
    "unique": st.lists(any_text | st.just("a"), max_size=3) | json_values,
    "unique_scope": st.sampled_from(["pending", "pending_and_processing", "x"]),
    "on_conflict": st.sampled_from(["return", "replace", "raise", "x"]),
    "metadata": st.dictionaries(any_text, json_values, max_size=4) | json_values,
    "workflow_id": st.uuids().map(str) | json_values,
}
in_graphs = (
    "payload", "queue", "priority", "scheduled_at", "dependency_ids", "on_failure", "timeout", "expires_at", "metadata",
)  # fmt: skip
types = st.just("free") | st.just("strict") | any_text
names = st.sampled_from("abc") | any_text
steps = st.fixed_dictionaries(
    {"type": st.just("free")},
    optional={"after": st.lists(names, max_size=3) | json_values, **{name: likely[name] for name in in_graphs}},
)
graphs = st.fixed_dictionaries({"jobs": st.dictionaries(names, steps | json_values, max_size=4) | json_values})
bodies = st.fixed_dictionaries({"type": types}, optional=likely) | st.dictionaries(any_text, json_values) | json_values


@given(body=bodies)
@example(body={"type": "free", "payload": {"a": {"\ud800": {}}}})
@example(body={"type": "free", "metadata": {"\ud800": {"\x00": 1e16}}})
@example(body={"type": "free", "scheduled_at": "9999-12-31T23:59:59-14:00"})
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_body_ends_in_a_server_error(api: Client, body: Any) -> None:
    """A job that was made can be read; one that was refused has a reason that says nothing of PostgreSQL."""
    response = post(api, json.dumps(body).encode())
    assert response.status_code in (200, 201, 409, 422), response.content
    answer = read(response, response.status_code)
    if response.status_code < 300:
        found = read(api.get(f"{JOBS}/{answer['data']['id']}"), 200)["data"]
        for part in ("payload", "metadata"):
            assert _numbers_as_floats(found[part]) == _numbers_as_floats(answer["data"][part])
    else:
        assert not any(DATABASE_WORDS.search(problem["message"].replace(str(body), "")) for problem in answer["errors"])
    assert connection.is_usable()


@given(body=graphs)
@example(body={"jobs": {"\ud800": {"type": "free", "after": ["\x00"]}}})
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_graph_ends_in_a_server_error(api: Client, body: Any) -> None:
    """A graph that was made can be read, with all its jobs; one that was refused has a reason."""
    response = api.post(WORKFLOWS, json.dumps(body).encode(), content_type="application/json")
    assert response.status_code in (201, 422), response.content
    answer = read(response, response.status_code)
    if response.status_code == 201:
        found = read(api.get(f"{WORKFLOWS}/{answer['data']['id']}"), 200)["data"]
        assert {job["step"]: job["id"] for job in found["jobs"]} == answer["data"]["jobs"]
    else:
        assert not any(DATABASE_WORDS.search(problem["message"].replace(str(body), "")) for problem in answer["errors"])
    assert connection.is_usable()


@given(key=any_text | st.text(st.characters(codec="latin-1"), max_size=202))
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_idempotency_key_ends_in_a_server_error(api: Client, key: str) -> None:
    """Nor does any header that a server lets through; one that is accepted gives the same answer twice."""
    first, second = (
        api.post(JOBS, {"type": "free"}, content_type="application/json", headers={"Idempotency-Key": key})
        for _ in range(2)
    )
    assert first.status_code in (201, 422), first.content
    read(first, first.status_code)
    assert first.content == second.content


def _numbers_as_floats(value: Any) -> Any:
    """Return the value so that 1e16 and 10000000000000000, which are the same in JSON, are the same in Python."""
    return json.loads(json.dumps(value), parse_int=float)


@given(body=st.binary(max_size=200))
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_bytes_end_in_a_server_error(api: Client, body: bytes) -> None:
    """Nor does what is hardly ever JSON."""
    response = post(api, body)
    assert response.status_code in (400, 422), response.content
    read(response, response.status_code)


@given(query=st.dictionaries(st.sampled_from(["status", "type", "queue", "before", "limit", "x"]), any_text))
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_query_ends_in_a_server_error(api: Client, query: dict[str, str]) -> None:
    """Nor does any query of a list."""
    clean = {name: value.encode("utf-8", "replace") for name, value in query.items()}
    response = api.get(JOBS, clean)
    assert response.status_code in (200, 422), response.content
    read(response, response.status_code)


@given(name=st.text(max_size=5) | st.text("aZ9_.:-", max_size=102) | st.from_regex(r"^[A-Za-z0-9_][A-Za-z0-9_.:-]*$"))
@example(name="a\n")
def test_rest_and_python_have_the_same_rule_for_names(name: str) -> None:
    """The pattern of the schema, matched by another engine, accepts exactly what the rest of the code does."""
    try:
        TypeAdapter(Name).validate_python(name)
    except ValidationError:
        assert not valid_name(name)
    else:
        assert valid_name(name)
