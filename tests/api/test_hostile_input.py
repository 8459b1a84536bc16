"""What a client may send that nobody expected: each case has its answer, and leaves nothing behind."""

import json
import uuid
from typing import Any

import pytest
from django.test import Client

from jobs import enqueue
from jobs.models import Job
from tests.api.answers import JOBS, problems, read

pytestmark = pytest.mark.django_db

ID = str(uuid.UUID(int=5))
TOO_LATE = "Input should be less than or equal to 9998-12-31T00:00:00Z"
TOO_EARLY = "Input should be greater than or equal to 1970-01-01T00:00:00Z"
NAME = "String should match pattern '^[A-Za-z0-9_][A-Za-z0-9_.:-]*$'"
NO_TEXT = "Input should be a valid string, unable to parse raw data as a unicode string"
NO_NUMBER = "Input should be a valid number, unable to parse string as a number"
NO_OBJECT = "Input should be a valid dictionary or object to extract fields from"


def post(api: Client, body: str | bytes, address: str = JOBS) -> Any:
    """Post a body as it is."""
    return api.post(address, body.encode() if isinstance(body, str) else body, content_type="application/json")


def with_payload(payload: str) -> str:
    """Return the body for a job with this payload, as JSON text."""
    return f'{{"type": "free", "payload": {payload}}}'


def with_field(name: str, value: str) -> str:
    """Return the body for a job with one more field, as JSON text."""
    return f'{{"type": "free", "{name}": {value}}}'


# Bodies that are no JSON


@pytest.mark.parametrize(
    "body",
    [
        "nope",
        "{",
        '{"type": "free"}}',
        "{'type': 'free'}",
        '{"type": "free",}',
        b"\xff\xfe",
        b'{"type": "\xff"}',
        b"\x00",
        "type=free",
        with_payload('{"a": ' + "[" * 100_000 + "]" * 100_000 + "}"),
        with_payload('{"a": ' + "9" * 5000 + "}"),
    ],
    ids=lambda body: repr(body)[:25],
)
def test_a_body_that_cannot_be_parsed_is_400(api: Client, body: str | bytes) -> None:
    """Broken JSON, wrong encodings, and what is too deep or too long for any parser."""
    assert read(post(api, body), 400)["message"] == "Cannot parse request body"
    assert not Job.objects.exists()


@pytest.mark.parametrize(("size", "status"), [(2_000_000, 201), (3_000_000, 413), (10_000_000, 413)])
def test_a_body_that_is_too_large_is_413(api: Client, size: int, status: int) -> None:
    """Above Django's DATA_UPLOAD_MAX_MEMORY_SIZE nothing is read; below it the limit of payloads decides."""
    body = read(post(api, with_payload('{"a": "' + "x" * size + '"}')), status)
    assert body["message"] == ("The job was made." if status == 201 else "The request is too large.")
    assert Job.objects.count() == (status == 201)


def test_a_payload_over_its_limit_is_422(api: Client, settings: Any) -> None:
    """It was read, and is too large to be kept; the answer says where large data belongs."""
    settings.DILAMME = {**settings.DILAMME, "MAX_PAYLOAD_BYTES": 1000}
    ((field, message),) = problems(post(api, with_payload('{"a": "' + "x" * 1000 + '"}')))
    assert field == "payload"
    assert message.startswith("free: payload is 1,008 bytes of JSON; at most 1,000 are stored: keep large data in")


# Bodies of the wrong shape

WRONG = [
    ("", "body", "Field required"),
    ("null", "body", NO_OBJECT),
    ("[]", "body", NO_OBJECT),
    ("5", "body", NO_OBJECT),
    ('"free"', "body", NO_OBJECT),
    ("NaN", "body", NO_OBJECT),
    ("{}", "type", "Field required"),
    ('{"type": 5}', "type", "Input should be a valid string"),
    ('{"type": null}', "type", "Input should be a valid string"),
    ('{"type": ""}', "type", "String should have at least 1 character"),
    ('{"type": "two words"}', "type", NAME),
    ('{"type": "free\\u0000"}', "type", NAME),
    ('{"type": "free\\n"}', "type", NAME),
    ('{"type": "\\ud800"}', "type", NO_TEXT),
    ('{"type": "%s"}' % ("x" * 101), "type", "String should have at most 100 characters"),
    ('{"type": "free", "\\ud800": 1}', "body", NO_TEXT),
    (with_field("extra", "1"), "extra", "Extra inputs are not permitted"),
    (with_field("id", f'"{ID}"'), "id", "Extra inputs are not permitted"),
    (with_field("status", '"completed"'), "status", "Extra inputs are not permitted"),
    (with_field("payload", "[]"), "payload", "Input should be a valid dictionary"),
    (with_field("payload", "null"), "payload", "Input should be a valid dictionary"),
    (with_field("payload", '"{}"'), "payload", "Input should be a valid dictionary"),
    (with_field("queue", '""'), "queue", "String should have at least 1 character"),
    (with_field("queue", '"a@later"'), "queue", NAME),
    (with_field("queue", "[]"), "queue", "Input should be a valid string"),
    (with_field("priority", "0.999"), "priority", "Input should be greater than or equal to 1"),
    (with_field("priority", "3.001"), "priority", "Input should be less than or equal to 3"),
    (with_field("priority", "NaN"), "priority", "Input should be a finite number"),
    (with_field("priority", "1e999"), "priority", "Input should be a finite number"),
    (with_field("priority", '"high"'), "priority", NO_NUMBER),
    (with_field("priority", "{}"), "priority", "Input should be a valid number"),
    (with_field("max_attempts", "0"), "max_attempts", "Input should be greater than or equal to 1"),
    (with_field("max_attempts", "1001"), "max_attempts", "Input should be less than or equal to 1000"),
    (
        with_field("max_attempts", "2.5"),
        "max_attempts",
        "Input should be a valid integer, got a number with a fractional part",
    ),
    (with_field("max_attempts", "9" * 4000), "max_attempts", "Input should be less than or equal to 1000"),
    (with_field("on_failure", '"explode"'), "on_failure", "Input should be 'cancel' or 'run'"),
    (with_field("timeout", "0"), "timeout", "Input should be greater than 0"),
    (with_field("timeout", "-1"), "timeout", "Input should be greater than 0"),
    (with_field("timeout", "31622401"), "timeout", "Input should be less than or equal to 31622400"),
    (with_field("timeout", "NaN"), "timeout", "Input should be a finite number"),
    (with_field("timeout", "1e999"), "timeout", "Input should be a finite number"),
    (with_field("timeout", '"soon"'), "timeout", NO_NUMBER),
    (with_field("expires_at", '"2030-01-02T03:04:05"'), "expires_at", "Input should have timezone info"),
    (with_field("expires_at", '"9999-12-31T23:59:59Z"'), "expires_at", TOO_LATE),
    (with_field("expires_at", '"0001-01-01T00:00:00Z"'), "expires_at", TOO_EARLY),
    (with_field("unique_key", '""'), "unique_key", "String should have at least 1 character"),
    (with_field("unique_key", '"%s"' % ("x" * 201)), "unique_key", "String should have at most 200 characters"),
    (with_field("unique_key", "5"), "unique_key", "Input should be a valid string"),
    (
        with_field("unique_key", '"a\\u0000"'),
        "unique_key",
        "unique_key is 'a\\x00'; use 1 to 200 printable characters.",
    ),
    (with_field("unique", '"a"'), "unique", "Input should be a valid list"),
    (with_field("unique", "[5]"), "unique.0", "Input should be a valid string"),
    (
        with_field("unique", json.dumps(["a"] * 101)),
        "unique",
        "List should have at most 100 items after validation, not 101",
    ),
    (
        with_field("unique", '["a"]'),
        "unique",
        "unique names 'a', which the payload does not have; it has nothing.",
    ),
    (
        with_field("unique_key", '"k", "unique": ["a"]'),
        "unique_key",
        "unique_key and unique are both given; use one of them.",
    ),
    (with_field("unique_scope", '"ever"'), "unique_scope", "Input should be 'pending' or 'pending_and_processing'"),
    (with_field("on_conflict", '"fight"'), "on_conflict", "Input should be 'return', 'replace' or 'raise'"),
    (with_field("workflow_id", "5"), "workflow_id", "UUID input should be a string, bytes or UUID object"),
    (with_field("after", '["a"]'), "after", "Extra inputs are not permitted"),
    (with_field("concurrency_key", '""'), "concurrency_key", "String should have at least 1 character"),
    (with_field("metadata", "[]"), "metadata", "Input should be a valid dictionary"),
    (with_field("metadata", '"{}"'), "metadata", "Input should be a valid dictionary"),
    (with_field("metadata", "5"), "metadata", "Input should be a valid dictionary"),
    (with_field("scheduled_at", '"2030-01-02T03:04:05"'), "scheduled_at", "Input should have timezone info"),
    (with_field("scheduled_at", '"9999-12-31T23:59:59Z"'), "scheduled_at", TOO_LATE),
    (with_field("scheduled_at", '"9999-12-31T23:59:59-23:59"'), "scheduled_at", TOO_LATE),
    (with_field("scheduled_at", '"0001-01-01T00:00:00Z"'), "scheduled_at", TOO_EARLY),
    (with_field("scheduled_at", '"0001-01-01T00:00:00+23:59"'), "scheduled_at", TOO_EARLY),
    (with_field("dependency_ids", "5"), "dependency_ids", "Input should be a valid list"),
    (with_field("dependency_ids", f'"{ID}"'), "dependency_ids", "Input should be a valid list"),
    (with_field("dependency_ids", "[null]"), "dependency_ids.0", "UUID input should be a string, bytes or UUID object"),
    (
        with_field("dependency_ids", f'["{ID}"]'),
        "dependency_ids",
        f"No job has the id {ID}: a job can only depend on jobs that exist.",
    ),
    (
        with_field("dependency_ids", json.dumps([ID] * 10_001)),
        "dependency_ids",
        "List should have at most 10000 items after validation, not 10001",
    ),
]


@pytest.mark.parametrize(("body", "field", "message"), WRONG, ids=[body[:60] for body, _, _ in WRONG])
def test_what_is_out_of_bounds_is_422(api: Client, body: str, field: str, message: str) -> None:
    """The answer names the field of the request, and what would be right."""
    assert problems(post(api, body)) == [(field, message)]
    assert not Job.objects.exists()


@pytest.mark.parametrize(
    ("field", "value", "start"),
    [
        ("scheduled_at", '"soon"', "Input should be a valid datetime"),
        ("scheduled_at", "1e300", "Input should be a valid datetime"),
        ("scheduled_at", '"2030-02-30T00:00:00Z"', "Input should be a valid datetime"),
        ("scheduled_at", '"2030-01-02T00:00:00+24:00"', "Input should be a valid datetime"),
        ("max_attempts", "1e300", "Unable to parse input string as an integer"),
        ("dependency_ids", '["5"]', "Input should be a valid UUID"),
    ],
)
def test_what_cannot_be_read_as_its_type_is_422(api: Client, field: str, value: str, start: str) -> None:
    """The parser says what it stumbled over; its exact words are its own."""
    ((found, message),) = problems(post(api, with_field(field, value)))
    assert found.startswith(field)
    assert message.startswith(start)


def test_many_mistakes_are_told_at_once_up_to_a_limit(api: Client) -> None:
    """A client fixes all at once, and a hostile one gets no answer larger than his question."""
    assert len(problems(post(api, '{"priority": 9, "queue": 5, "max_attempts": 0, "on_failure": 1}'))) == 5
    assert len(problems(post(api, json.dumps({"type": "free", "dependency_ids": ["x"] * 5000})))) == 20


def test_an_unknown_type_is_told_with_the_known_ones(api: Client) -> None:
    """The client sees what it could have meant."""
    ((field, message),) = problems(post(api, '{"type": "fre"}'))
    assert field == "type"
    assert message.startswith("No handler is registered for the type 'fre'. Known types: ")
    assert " free, " in message


# Payloads that PostgreSQL could not store

NUL = "contains a NUL character at position {}, which PostgreSQL cannot store; remove it."
HALF = "contains half of a surrogate pair at position 0, which PostgreSQL cannot store; remove it."
NO_JSON = "The payload of free cannot be stored as JSON: "
INFINITE = "which JSON cannot express; use None or a string."
WAY_OUT = "keep large data in a file or a table and pass its name or id."


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        ('{"a": NaN}', f"free: payload.a is nan, {INFINITE}"),
        ('{"a": [Infinity]}', f"free: payload.a[0] is inf, {INFINITE}"),
        ('{"a": -1e999}', f"free: payload.a is -inf, {INFINITE}"),
        ('{"a": "x\\u0000"}', f"free: payload.a {NUL.format(1)}"),
        ('{"\\u0000": 1}', f"free: a key of payload {NUL.format(0)}"),
        ('{"a": {"b\\u0000": 1}}', f"free: a key of payload.a {NUL.format(1)}"),
        ('{"a": "\\ud800"}', f"free: payload.a {HALF}"),
        ('{"\\ud800": 1}', f"The payload does not fit free: payload: {NO_TEXT}."),
        (
            '{"a": {"\\ud800": 1}}',
            f"{NO_JSON}'utf-8' codec can't encode character '\\ud800' in position 0: surrogates not allowed",
        ),
        (
            '{"a": ' + "[" * 101 + "]" * 101 + "}",
            f"free: payload.a{'[0]' * 100} is nested more than 100 levels deep; flatten it.",
        ),
        (
            '{"a": ' + "[" * 900 + "]" * 900 + "}",
            f"{NO_JSON}Maximum serialization depth exceeded",
        ),
    ],
    ids=lambda text: text[:30],
)
def test_a_payload_that_cannot_be_stored_is_422(api: Client, payload: str, message: str) -> None:
    """What JSON allows and PostgreSQL does not, or the other way round, is refused with its place."""
    ((field, found),) = problems(post(api, with_payload(payload)))
    assert field == "payload"
    assert found == message
    assert not Job.objects.exists()


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ('{"a": NaN}', f"metadata.a is nan, {INFINITE}"),
        ('{"a": [-1e999]}', f"metadata.a[0] is -inf, {INFINITE}"),
        ('{"a": "x\\u0000"}', f"metadata.a {NUL.format(1)}"),
        ('{"\\u0000": 1}', f"a key of metadata {NUL.format(0)}"),
        ('{"a": "\\ud800"}', f"metadata.a {HALF}"),
        ('{"\\ud800": 1}', f"a key of metadata {HALF}"),
        (
            '{"a": ' + "[" * 900 + "]" * 900 + "}",
            f"metadata.a{'[0]' * 100} is nested more than 100 levels deep; flatten it.",
        ),
        (
            '{"a": "%s"}' % ("x" * 1_000_000),
            f"metadata is 1,000,008 bytes of JSON; at most 8,192 are stored: {WAY_OUT}",
        ),
    ],
    ids=lambda text: text[:30],
)
def test_metadata_that_cannot_be_stored_is_422(api: Client, metadata: str, message: str) -> None:
    """It is refused with its place, or its size."""
    assert problems(post(api, with_field("metadata", metadata))) == [("metadata", message)]
    assert not Job.objects.exists()


@pytest.mark.parametrize(
    "payload",
    [
        '{"a": "\\u0001\\u001f\\ufffe\\ud83d\\ude00", "": "", "%s": 1}' % ("k" * 10_000),
        '{"a": 1e-400, "b": 1e15, "c": 5e-324, "d": %s}' % ("9" * 4000),
        '{"__class__": 1, "__proto__": {}, "self": 2, "ctx": 3, "field_0": 4, "json": 5, "%(a)s": "{0}"}',
        '{"a": ' + "[" * 99 + "1" + "]" * 99 + "}",
        '{"\'; drop table dilamme_job; --": "\\\\\\"\'"}',
    ],
    ids=lambda text: text[:30],
)
def test_a_payload_that_is_merely_strange_is_kept(api: Client, payload: str) -> None:
    """What is legal comes back as it was sent."""
    made = read(post(api, with_payload(payload)), 201)["data"]
    assert made["payload"] == json.loads(payload)
    assert read(api.get(f"{JOBS}/{made['id']}"), 200)["data"]["payload"] == json.loads(payload)


@pytest.mark.parametrize(
    "metadata",
    [
        '{"a": "\\u0001\\u001f\\ufffe\\ud83d\\ude00", "": "", "%s": 1}' % ("k" * 8000),
        '{"__class__": 1, "__proto__": {}, "ctx": 3, "%(a)s": "{0}", "n": NULL}'.replace("NULL", "9" * 4000),
        '{"\'; drop table dilamme_job; --": "\\\\\\"\'{},"}',
    ],
    ids=lambda text: text[:30],
)
def test_metadata_that_is_merely_strange_is_kept(api: Client, metadata: str) -> None:
    """What is legal comes back as it was sent."""
    made = read(post(api, with_field("metadata", metadata)), 201)["data"]
    assert made["metadata"] == json.loads(metadata)
    assert read(api.get(f"{JOBS}/{made['id']}"), 200)["data"]["metadata"] == json.loads(metadata)


@pytest.mark.parametrize(
    ("field", "value", "shown"),
    [
        ("scheduled_at", '"2030-01-02T00:00:00+23:59"', "2030-01-01T00:01:00Z"),
        ("scheduled_at", '"1970-01-01T00:00:00Z"', "1970-01-01T00:00:00Z"),
        ("scheduled_at", '"9998-12-31T00:00:00Z"', "9998-12-31T00:00:00Z"),
        ("max_attempts", "1000", 1000),
        ("priority", "3", 3.0),
        ("queue", '"%s"' % ("q" * 100), "q" * 100),
        ("timeout", "31622400", 31622400.0),
        ("timeout", "1e-300", 1e-300),
        ("expires_at", '"9998-12-31T00:00:00Z"', "9998-12-31T00:00:00Z"),
        ("unique_key", '"%s"' % ("\u00e9" * 200), "\u00e9" * 200),
    ],
)
def test_what_is_just_within_bounds_is_accepted(api: Client, field: str, value: str, shown: Any) -> None:
    """The bounds are where they are said to be; lists still work afterwards."""
    assert read(post(api, with_field(field, value)), 201)["data"][field] == shown
    assert read(api.get(JOBS), 200)["data"][0][field] == shown


# Addresses and queries


@pytest.mark.parametrize(
    ("query", "field", "start"),
    [
        ("limit=0", "limit", "Input should be greater than or equal to 1"),
        ("limit=-1", "limit", "Input should be greater than or equal to 1"),
        ("limit=201", "limit", "Input should be less than or equal to 200"),
        ("limit=1000000000", "limit", "Input should be less than or equal to 200"),
        ("limit=" + "9" * 5000, "limit", "Unable to parse input string as an integer, exceeded maximum size"),
        ("limit=1.5", "limit", "Input should be a valid integer"),
        ("limit=", "limit", "Input should be a valid integer"),
        ("limit=x", "limit", "Input should be a valid integer"),
        ("before=x", "before", "Input should be a valid UUID"),
        ("before=", "before", "Input should be a valid UUID"),
        ("status=paused", "status", "Input should be 'pending', 'processing', 'completed', 'failed' or 'cancelled'"),
        ("status=%00", "status", "Input should be 'pending'"),
        ("type=%00", "type", NAME),
        ("type=" + "x" * 101, "type", "String should have at most 100 characters"),
        ("queue=%ED%A0%80", "queue", NAME),
        ("queue=a%20b", "queue", NAME),
        ("queue=", "queue", "String should have at least 1 character"),
    ],
)
def test_a_query_out_of_bounds_is_422(api: Client, query: str, field: str, start: str) -> None:
    """An over-large limit is refused, not cut in silence; a filter that can match nothing is a mistake."""
    ((found, message),) = problems(api.get(f"{JOBS}?{query}"))
    assert found == field
    assert message.startswith(start)


def test_a_cursor_from_anywhere_is_a_cursor(api: Client) -> None:
    """Any id may be gone on from, also one that is no job, or not of this list."""
    job = enqueue("free")
    assert [found["id"] for found in read(api.get(f"{JOBS}?before={'f' * 32}"), 200)["data"]] == [str(job.pk)]
    assert read(api.get(f"{JOBS}?before={ID}"), 200)["data"] == []


@pytest.mark.parametrize("id_", ["x", "5", "%00", "..%2f..", "0" * 31, "z" * 32, "%F0%9F%98%80", "x" * 5000])
def test_an_id_that_is_none_is_422(api: Client, id_: str) -> None:
    """It cannot be the id of any job, so that nothing is looked up."""
    for method, address in (("GET", id_), ("POST", f"{id_}/cancel"), ("POST", f"{id_}/retry")):
        response = api.generic(method, f"{JOBS}/{id_}" if method == "GET" else f"{JOBS}/{address}")
        if "%2f" in id_:
            read(response, 404)
        else:
            assert problems(response)[0][0] == "job_id"


def test_an_action_ignores_its_body(api: Client) -> None:
    """There is nothing to say but the address; what is said all the same does no harm."""
    job = enqueue("free")
    assert read(post(api, b"\xff not json", f"{JOBS}/{job.pk}/cancel"), 200)["data"]["status"] == "cancelled"
