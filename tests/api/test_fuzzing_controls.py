"""Whatever a client sends about series, queues and types: no server error, and no word of the database."""

import json
from typing import Any
from urllib.parse import quote

import pytest
from django.db import connection
from django.test import Client
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from jobs import enqueue
from tests.api.answers import JOBS, read
from tests.api.test_fuzzing import DATABASE_WORDS, any_text, json_values, times

pytestmark = pytest.mark.django_db

SERIES, QUEUES, TYPES = "/api/v1/series", "/api/v1/queues", "/api/v1/types"
JSON = "application/json"
FUZZED = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

LIMITS = ["concurrency", "concurrency_per_key", "rate", "burst"]
numbers = st.integers(0, 5) | st.integers() | st.floats() | json_values
intervals = st.from_regex(r"\A[0-9]{1,10}(s|m|h|d|w|mo|y)\Z") | any_text
parts = st.sampled_from(["*", "0", "*/7", "29", "2", "1-5", "L", "MON#3"])
crons = st.lists(parts, min_size=5, max_size=6).map(" ".join)
fields = {
    "payload": st.dictionaries(any_text, json_values, max_size=3) | json_values,
    "queue": any_text | st.just("q") | json_values,
    "priority": numbers,
    "max_attempts": numbers,
    "interval": intervals | json_values,
    "cron": crons | any_text,
    "zone": st.sampled_from(["Europe/Paris", "Pacific/Kiritimati", "America/St_Johns", "../etc"]) | any_text,
    "mode": st.sampled_from(["grid", "after"]) | any_text,
    "catch_up": st.sampled_from(["skip", "one", "all"]) | json_values,
    "catch_up_limit": numbers,
    "overlap": st.sampled_from(["skip", "allow"]) | any_text,
    "jitter": numbers,
    "starts_at": times | json_values,
    "ends_at": times | json_values,
}
odd_names = any_text | st.sampled_from(["q", "a b", "..", "%", "x" * 200, "\x00"])
names = odd_names.filter(lambda name: not DATABASE_WORDS.search(name))  # answers repeat the name that was asked for


def check(response: Any, *statuses: int) -> dict[str, Any]:
    """Return the body of an answer that has one of these statuses, and speaks of no database."""
    assert response.status_code in statuses, response.content
    body = read(response, response.status_code)
    told = [body["message"]] if response.status_code >= 400 else []
    assert not any(DATABASE_WORDS.search(text) for text in told + [each["message"] for each in body["errors"]]), body
    assert connection.is_usable()
    return body


def address(*parts: str) -> str:
    """Return an address in which a client has put any text where a name belongs."""
    return "/".join([parts[0], *(quote(part.encode("utf-8", "replace"), safe="") for part in parts[1:])])


@given(body=st.fixed_dictionaries({"name": st.just("s"), "type": st.just("free")}, optional=fields))
@example(body={"name": "s", "type": "free", "interval": "1s", "starts_at": "1970-01-01T00:00:00Z", "catch_up": "all"})
@example(body={"name": "s", "type": "free", "interval": "9999y", "starts_at": "9998-01-01T00:00:00Z"})
@example(body={"name": "s", "type": "free", "interval": "9999y", "mode": "after"})
@FUZZED
def test_no_series_ends_in_a_server_error(api: Client, body: dict[str, Any]) -> None:
    """One that was made can be read, changed, paused, resumed, run and removed; else the answer says what is wrong."""
    text = json.dumps(body)
    if check(api.post(SERIES, text, content_type=JSON), 201, 422)["data"] is None:
        return
    check(api.get(f"{SERIES}/s"), 200)
    check(api.get(SERIES), 200)
    for act in ("pause", "resume", "run"):
        check(api.post(f"{SERIES}/s/{act}"), 200, 201, 422)
    changes = json.dumps({name: value for name, value in body.items() if name in fields})
    check(api.patch(f"{SERIES}/s", changes, content_type=JSON), 200, 422)
    check(api.delete(f"{SERIES}/s"), 200)


@given(name=names, body=st.dictionaries(st.sampled_from(LIMITS), numbers))
@example(name="q", body={"rate": 5e-324, "burst": 1})
@example(name="q", body={"concurrency": 10**30})
@FUZZED
def test_no_limit_ends_in_a_server_error(api: Client, name: str, body: dict[str, Any]) -> None:
    """Nor does any name of a queue."""
    answer = check(api.put(address(QUEUES, name), json.dumps(body), content_type=JSON), 200, 400, 404, 405, 422)
    if answer["data"]:
        assert {field: answer["data"][field] for field in body} == body
        check(api.get(QUEUES), 200)


@given(name=names, until=times | any_text | st.none())
@example(name="q", until="9999-12-31T23:59:59-14:00")
@FUZZED
def test_no_name_and_no_time_ends_in_a_server_error(api: Client, name: str, until: str | None) -> None:
    """Wherever a name stands in an address, and whatever time a pause is to end."""
    query = "" if until is None else "?until=" + quote(until.encode("utf-8", "replace"), safe="")
    for kind in (QUEUES, TYPES):
        check(api.post(address(kind, name, "pause") + query), 200, 404, 422)
        check(api.post(address(kind, name, "resume")), 200, 404, 422)
    for method, act in (("get", ""), ("delete", ""), ("post", "/pause"), ("post", "/resume"), ("post", "/run")):
        check(getattr(api, method)(address(SERIES, name) + act), 200, 404, 405)
    for listed in (SERIES, QUEUES, f"{TYPES}/paused"):
        check(api.get(listed, {"after": name.encode("utf-8", "replace")}), 200, 422)


@given(body=st.dictionaries(st.sampled_from(["payload", "queue", "priority", "scheduled_at"]), json_values | times))
@example(body={"payload": {"\ud800": "\x00"}})
@example(body={"scheduled_at": "9999-12-31T23:59:59-14:00"})
@FUZZED
def test_no_edit_ends_in_a_server_error(api: Client, body: dict[str, Any]) -> None:
    """A job that was edited can be read and explained."""
    job = f"{JOBS}/{enqueue('free').pk}"
    check(api.patch(job, json.dumps(body), content_type=JSON), 200, 422)
    check(api.get(job), 200)
    check(api.get(f"{job}/explain"), 200)
