"""Payloads: checked against the handler's annotations, stored as JSON, and given back as what the handler expects."""

import dataclasses
import enum
import json
import math
import uuid
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal

import pydantic
import pytest

from jobs.errors import InvalidPayload
from jobs.registry import JobType


class Colour(enum.StrEnum):
    """A choice."""

    RED = "red"


class Address(pydantic.BaseModel):
    """A value with parts."""

    street: str
    number: int = 1


@dataclasses.dataclass
class Point:
    """A value with parts, by dataclass."""

    x: float
    y: float


def complaint(kind: JobType, payload: Any) -> str:
    """Return why a payload is refused."""
    with pytest.raises(InvalidPayload) as caught:
        kind.normalise(payload)
    assert caught.value.field == "payload"
    return str(caught.value)


def of(annotation: Any) -> JobType:
    """Return a type whose handler has one parameter `value` with this annotation."""

    def function(value: Any) -> None: ...

    function.__annotations__["value"] = annotation
    return JobType("t", function)


# There and back


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (int, 5),
        (float, 0.1),
        (str, "\u20ac"),
        (bool, True),
        (bytes, b"abc"),
        (datetime, datetime(2030, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)),
        (date, date(2030, 1, 2)),
        (timedelta, timedelta(days=400, microseconds=1)),
        (uuid.UUID, uuid.UUID(int=5)),
        (Decimal, Decimal("1.10")),
        (Colour, Colour.RED),
        (Address, Address(street="Rue")),
        (list[Address], [Address(street="Rue", number=2)]),
        (Point, Point(1.5, 2.0)),
        (set[int], {1, 2}),
        (tuple[int, str], (1, "a")),
        (dict[int, date], {1: date(2030, 1, 2)}),
        (int | None, None),
        (Literal["a", "b"], "b"),
        (Annotated[int, pydantic.Field(gt=4)], 5),
        (Any, {"a": [1, 2.5, None, "x"]}),
    ],
    ids=str,
)
def test_an_argument_comes_back_as_it_was(annotation: Any, value: Any) -> None:
    """Through JSON and back, the handler gets a value of the type that it asks for."""
    kind = of(annotation)
    found = kind.validate(json.loads(json.dumps(kind.normalise({"value": value}))))["value"]
    assert (type(found), found) == (type(value), value)


def test_json_is_accepted_for_what_it_stands_for() -> None:
    """A client of the REST API writes dates and ids as text."""
    assert of(datetime).normalise({"value": "2030-01-02T03:04:05Z"}) == {"value": "2030-01-02T03:04:05Z"}
    assert of(Address).normalise({"value": {"street": "Rue"}}) == {"value": {"street": "Rue"}}


@pytest.mark.parametrize(
    "name", ["json", "copy", "schema", "dict", "model_config", "model_dump", "field_0", "_private", "class_"]
)
def test_a_parameter_may_have_any_name(name: str) -> None:
    """Names that mean something to the machinery of schemas mean nothing in a payload."""
    space: dict[str, Any] = {}
    exec(f"def function(other: int, {name}: str, **rest): ...", space)
    kind = JobType("t", space["function"])
    payload = {"other": 1, name: "x", "field_1": "free"}
    assert kind.normalise(payload) == payload
    assert kind.validate(payload) == payload


def with_defaults(a: int, b: str = "old", c: list[int] = []) -> None:  # noqa: B006  users do
    """Have defaults."""


def test_defaults_are_left_out_of_what_is_stored() -> None:
    """A job that waited through a deploy gets the newer default."""
    kind = JobType("t", with_defaults)
    assert kind.normalise({"a": 1}) == {"a": 1}
    assert kind.normalise({"a": 1, "b": "old"}) == {"a": 1, "b": "old"}
    assert kind.validate({"a": 1}) == {"a": 1, "b": "old", "c": []}


def test_a_default_is_not_shared_between_runs() -> None:
    """A handler that changes its default list does not change it for the next run."""
    kind = JobType("t", with_defaults)
    kind.validate({"a": 1})["c"].append(5)
    assert kind.validate({"a": 1})["c"] == []


def free(a: int, **rest: Any) -> None:
    """Take whatever comes."""


def test_keyword_parameters_take_whatever_comes() -> None:
    """With ** in its signature a handler accepts arguments it does not name."""
    kind = JobType("t", free)
    assert kind.normalise({"a": 1, "b": {"c": date(2030, 1, 2)}}) == {"a": 1, "b": {"c": "2030-01-02"}}
    assert kind.validate({"a": 1, "b": 2}) == {"a": 1, "b": 2}


def unannotated(a, b=5):
    """Say nothing of types."""


def test_without_annotations_everything_is_taken_as_it_is() -> None:
    """Annotations are a help, not a duty."""
    kind = JobType("t", unannotated)
    assert kind.validate(kind.normalise({"a": [1, "x"]})) == {"a": [1, "x"], "b": 5}


# Refusals


def two(a: int, b: str = "") -> None:
    """Take two arguments."""


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        ({}, "a: Field required."),
        ({"a": "x"}, "a: Input should be a valid integer, unable to parse string as an integer."),
        ({"a": 1, "c": 2}, "c: Extra inputs are not permitted."),
        ({"b": 1}, "a: Field required; b: Input should be a valid string."),
        ({"a": 1, "field_0": 1}, "field_0: Extra inputs are not permitted."),
        ([], "payload: Input should be a valid dictionary or instance of t."),
        (None, "payload: Input should be a valid dictionary or instance of t."),
        ({1: 2, "a": 1}, "1: Keys should be strings."),
    ],
)
def test_every_wrong_field_is_named(payload: Any, text: str) -> None:
    """All that is wrong is told at once, by the names that the caller used."""
    assert complaint(JobType("t", two), payload) == f"The payload does not fit t: {text}"


def test_a_long_list_of_mistakes_is_cut() -> None:
    """Ten mistakes are enough to see the kind."""
    text = complaint(of(list[int]), {"value": ["x"] * 1000})
    assert text.count("unable to parse") == 10
    assert text.endswith("; and 990 more.")


@pytest.mark.parametrize(
    "value",
    [object(), {"a": {"b": object()}}, b"\xff", {"\ud800": 1}, ["\ud800"]],
    ids=["object", "deep", "bytes", "surrogate key", "surrogate"],
)
def test_what_is_no_json_is_refused(value: Any) -> None:
    """An argument without annotation that JSON cannot express is the caller's mistake, told in one sentence."""
    try:
        normalised = of(Any).normalise({"value": value})
    except InvalidPayload as error:
        assert str(error).startswith("The payload of t cannot be stored as JSON: ")  # noqa: PT017  or below
    else:
        assert normalised == {"value": ["\ud800"]}, "left to the check of what PostgreSQL can store"


def test_a_value_that_contains_itself_is_refused() -> None:
    """There is no end to it in JSON."""
    value: list[Any] = []
    value.append(value)
    assert complaint(of(Any), {"value": value}).startswith(
        "The payload of t cannot be stored as JSON: Circular reference"
    )


@pytest.mark.parametrize("annotation", [float, Any], ids=str)
def test_infinity_is_left_to_the_check_of_what_postgresql_can_store(annotation: Any) -> None:
    """It is not turned into null on the way, which would change the value in silence."""
    assert of(annotation).normalise({"value": math.inf}) == {"value": math.inf}


def test_a_call_is_turned_into_a_payload() -> None:
    """Arguments by position get the names of the parameters."""
    kind = JobType("t", two)
    assert kind.payload_from((1, "x"), {}) == kind.payload_from((1,), {"b": "x"}) == {"a": 1, "b": "x"}


@pytest.mark.parametrize(
    ("args", "kwargs", "text"),
    [
        ((1, 2, 3), {}, "t takes 2 positional arguments, 3 were given."),
        ((1,), {"a": 2}, "t got the argument 'a' twice."),
    ],
)
def test_a_call_that_python_would_refuse_is_refused(args: tuple[Any, ...], kwargs: dict[str, Any], text: str) -> None:
    """The mistake shows where the job is made, not when it runs."""
    with pytest.raises(InvalidPayload) as caught:
        JobType("t", two).payload_from(args, kwargs)
    assert str(caught.value) == text


def test_a_handler_that_takes_anything_still_gets_its_context_from_the_worker():
    """With `ctx` and `**rest` a payload cannot pose as the context."""

    def anything(ctx: Any, **rest: Any) -> None:
        """Take anything."""

    kind = JobType(name="anything", handler=anything)
    assert kind.normalise({"a": 1}) == {"a": 1}
    with pytest.raises(InvalidPayload, match=r"The payload of anything has the key 'ctx', which the worker fills."):
        kind.normalise({"ctx": 1})
