"""How jobs are made: what is refused, and with which words; what is stored, and equal to what is returned."""

import math
import uuid
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest
from django.db import models
from django.utils import timezone as django_timezone

from jobs import NewJob, Options, aenqueue, aenqueue_many, enqueue, enqueue_many
from jobs.errors import InvalidJob, InvalidPayload, UnknownType
from jobs.limits import ATTEMPTS_RULE, NAME_RULE, PRIORITY_RULE, TIME_RULE
from jobs.models import Job

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("free_type")]

ID = uuid.UUID(int=5)


# Refusals


def hours(number: float) -> timezone:
    """Return a time zone this far from UTC."""
    return timezone(timedelta(hours=number))


REFUSED = [
    ({"queue": "a b"}, "queue", f"queue is 'a b'; {NAME_RULE}"),
    ({"queue": ""}, "queue", f"queue is ''; {NAME_RULE}"),
    ({"queue": 5}, "queue", f"queue is 5; {NAME_RULE}"),
    ({"queue": "x@later"}, "queue", f"queue is 'x@later'; {NAME_RULE}"),
    ({"priority": 0.999}, "priority", f"priority is 0.999; {PRIORITY_RULE}"),
    ({"priority": 3.001}, "priority", f"priority is 3.001; {PRIORITY_RULE}"),
    ({"priority": math.nan}, "priority", f"priority is nan; {PRIORITY_RULE}"),
    ({"priority": "high"}, "priority", f"priority is 'high'; {PRIORITY_RULE}"),
    ({"priority": True}, "priority", f"priority is True; {PRIORITY_RULE}"),
    ({"max_attempts": 0}, "max_attempts", f"max_attempts is 0; {ATTEMPTS_RULE}"),
    ({"max_attempts": 1001}, "max_attempts", f"max_attempts is 1001; {ATTEMPTS_RULE}"),
    ({"max_attempts": 2.5}, "max_attempts", f"max_attempts is 2.5; {ATTEMPTS_RULE}"),
    ({"max_attempts": "3"}, "max_attempts", f"max_attempts is '3'; {ATTEMPTS_RULE}"),
    (
        {"run_at": datetime(2030, 1, 2)},  # noqa: DTZ001  the mistake to be found
        "scheduled_at",
        "run_at is 2030-01-02 00:00:00 without a time zone; use an aware datetime.",
    ),
    ({"run_at": "tomorrow"}, "scheduled_at", "run_at is 'tomorrow'; use an aware datetime."),
    ({"run_at": date(2030, 1, 2)}, "scheduled_at", "run_at is datetime.date(2030, 1, 2); use an aware datetime."),
    (
        {"run_at": datetime(9999, 12, 31, 23, tzinfo=hours(-14))},
        "scheduled_at",
        f"run_at is 9999-12-31 23:00:00-14:00; {TIME_RULE}",
    ),
    (
        {"run_at": datetime(1, 1, 1, tzinfo=hours(14))},
        "scheduled_at",
        f"run_at is 0001-01-01 00:00:00+14:00; {TIME_RULE}",
    ),
    ({"on_failure": "explode"}, "on_failure", "on_failure is 'explode'; use cancel or run."),
    ({"on_failure": []}, "on_failure", "on_failure is []; use cancel or run."),
    ({"depends_on": ID}, "dependency_ids", f"depends_on is {ID!r}; use a list of job ids."),
    ({"depends_on": str(ID)}, "dependency_ids", f"depends_on is '{ID}'; use a list of job ids."),
    ({"depends_on": None}, "dependency_ids", "depends_on is None; use a list of job ids."),
    (
        {"depends_on": [ID, str(ID)]},
        "dependency_ids",
        f"depends_on contains '{ID}' of type str; use ids of jobs, which are UUIDs.",
    ),
    (
        {"depends_on": [uuid.UUID(int=i) for i in range(10_001)]},
        "dependency_ids",
        "10,001 dependencies; at most 10,000 are possible.",
    ),
]


@pytest.mark.parametrize(("options", "field", "text"), REFUSED, ids=[text[:40] for _, _, text in REFUSED])
def test_a_wrong_option_is_refused_with_its_value_and_the_rule(options: dict[str, Any], field: str, text: str) -> None:
    """Nothing out of range reaches PostgreSQL, whose error would end the caller's transaction."""
    with pytest.raises(InvalidJob) as caught:
        enqueue("free", {}, **options)
    assert (str(caught.value), caught.value.field) == (text, field)
    assert not Job.objects.exists()


def test_an_iterator_of_parents_is_refused() -> None:
    """It would be empty for the second job that shares the options."""
    with pytest.raises(InvalidJob, match=r"depends_on is <generator .*; use a list of job ids\."):
        enqueue("free", depends_on=(id_ for id_ in [ID]))


@pytest.mark.parametrize("type_", ["fre", "", None, [], "free "])
def test_an_unknown_type_is_refused_with_the_known_ones(type_: Any) -> None:
    """What no handler is registered for is never stored."""
    with pytest.raises(UnknownType) as caught:
        enqueue(type_)
    assert str(caught.value).startswith(f"No handler is registered for the type {type_!r}. Known types: ")
    assert " free," in str(caught.value)


def test_a_misspelt_option_is_refused() -> None:
    """An option that does not exist is not ignored."""
    with pytest.raises(TypeError, match="priorty"):
        enqueue("free", {}, priorty=1)


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        ({"a": math.nan}, "free: payload.a is nan, which JSON cannot express; use None or a string."),
        (
            {"a": ["\x00"]},
            "free: payload.a[0] contains a NUL character at position 0, which PostgreSQL cannot store; remove it.",
        ),
        ({"a": object()}, "The payload of free cannot be stored as JSON: Unable to serialize unknown type"),
        ([], "The payload does not fit free: payload: Input should be a valid dictionary"),
    ],
)
def test_a_payload_that_cannot_be_stored_is_refused(payload: Any, text: str) -> None:
    """The place in the payload is named, and the type of the job."""
    with pytest.raises(InvalidPayload) as caught:
        enqueue("free", payload)
    assert str(caught.value).startswith(text)


@pytest.mark.parametrize("size", [20_000, 1_000_000])
def test_a_large_payload_is_stored(size: int) -> None:
    """Notifications carry no payload, so that it may be larger than they can be."""
    made = enqueue("free", {"text": "x" * size})
    assert len(Job.objects.get(pk=made.pk).payload["text"]) == size


def test_a_payload_over_the_limit_is_refused(settings: Any) -> None:
    """The error names both sizes, and where large data belongs."""
    settings.DILAMME = {"MAX_PAYLOAD_BYTES": 1000}
    assert enqueue("free", {"a": "x" * 992})
    with pytest.raises(InvalidPayload) as caught:
        enqueue("free", {"a": "x" * 993})
    assert str(caught.value) == (
        "free: payload is 1,001 bytes of JSON; at most 1,000 are stored: keep large data in a file or a table and pass "
        "its name or id."
    )


# What is stored


def fields_of(made: Job) -> dict[str, Any]:
    """Return every column of a job as it stands in the object, without asking the database."""
    deferred = made.get_deferred_fields()
    assert not deferred
    return {field.attname: made.__dict__[field.attname] for field in Job._meta.concrete_fields}


def test_what_is_returned_is_the_row_as_stored(django_assert_num_queries: Any) -> None:
    """Nothing has to be read again: id, times and defaults are those of the row."""
    with django_assert_num_queries(1):
        made = enqueue("free", {"a": 1}, queue="q", priority=1, run_at=datetime(2040, 1, 2, tzinfo=hours(2)))
        fields = fields_of(made)
    assert fields == fields_of(Job.objects.get(pk=made.pk))
    assert isinstance(made.priority, float)
    assert not made._state.adding


def test_everything_has_a_default(settings: Any) -> None:
    """Options of the call, then those of the type, then the settings, decide."""
    settings.DILAMME = {"DEFAULT_QUEUE": "house", "DEFAULT_PRIORITY": 2.5, "MAX_ATTEMPTS": 9}
    made = enqueue("free")
    assert (made.queue, made.priority, made.max_attempts, made.payload) == ("house", 2.5, 9, {})
    assert (made.status, made.attempt, made.unmet, made.last_error, made.result) == ("pending", 0, 0, "", None)


def test_a_job_without_a_time_is_due_at_once() -> None:
    """Due by the database's clock, which is that of the workers."""
    made = enqueue("free")
    assert made.run_at == made.scheduled_at == made.created_at
    assert abs(django_timezone.now() - made.run_at) < timedelta(minutes=1)


@pytest.mark.parametrize("offset", [-23.99, -16, 0, 5.75, 23.99])
def test_a_time_is_kept_whatever_its_zone(offset: float) -> None:
    """PostgreSQL takes no offsets of 16 hours and more; the moment is the same in UTC."""
    when = datetime(2040, 2, 29, 12, 30, 15, 123456, tzinfo=hours(offset))
    made = enqueue("free", run_at=when)
    stored = Job.objects.get(pk=made.pk)
    assert made.run_at == stored.run_at == stored.scheduled_at == when
    assert made.run_at.tzinfo == UTC


@pytest.mark.parametrize("when", [datetime(1970, 1, 1, tzinfo=UTC), datetime(9998, 12, 31, tzinfo=UTC)])
def test_the_ends_of_the_calendar_can_be_shown_everywhere(when: datetime) -> None:
    """The first and the last time that are accepted can be read in every time zone."""
    made = enqueue("free", run_at=when)
    for offset in (-23, 23):
        assert Job.objects.get(pk=made.pk).run_at.astimezone(hours(offset)) == when


# Many at once


def test_many_are_one_statement_in_the_order_given(django_assert_num_queries: Any) -> None:
    """However many, whatever their types, queues and times."""
    new = [NewJob("free", {"n": n}, Options(queue=f"q{n % 3}", priority=1 + n % 3)) for n in range(300)]
    with django_assert_num_queries(1):
        made = enqueue_many(new)
    assert [one.payload["n"] for one in made] == list(range(300))
    assert [fields_of(one) for one in made] == [fields_of(one) for one in Job.objects.order_by("pk")]


def test_ids_ascend_in_the_order_given() -> None:
    """Jobs of equal urgency run in the order in which they were made."""
    made = enqueue_many(NewJob("free") for _ in range(5000))
    assert [one.pk for one in made] == sorted(one.pk for one in made)
    assert len({one.run_at for one in made}) == 1


def test_each_keeps_its_own_time() -> None:
    """Times do not get mixed up between the jobs of one statement."""
    whens = [datetime(2040, 1, day, tzinfo=UTC) for day in (9, 1, 5, 3)]
    made = enqueue_many(NewJob("free", {"day": when.day}, Options(run_at=when)) for when in whens)
    assert [one.run_at for one in made] == whens
    assert all(one.run_at.day == one.payload["day"] for one in Job.objects.all())


@pytest.mark.parametrize(
    "bad", [NewJob("nope"), NewJob("free", {"a": math.nan}), NewJob("free", {}, Options(priority=9))], ids=str
)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_one_that_is_wrong_makes_none(bad: NewJob, place: int) -> None:
    """All are checked before the first is written, wherever the bad one stands."""
    new = [NewJob("free"), NewJob("free")]
    new.insert(place, bad)
    with pytest.raises((UnknownType, InvalidJob)):
        enqueue_many(new)
    assert not Job.objects.exists()


def test_none_are_no_statement(django_assert_num_queries: Any) -> None:
    """An empty list costs nothing."""
    with django_assert_num_queries(0):
        assert enqueue_many([]) == []


@pytest.mark.usefixtures("async_db")
async def test_async_code_makes_the_same_jobs() -> None:
    """The async twins take the same arguments."""
    made = [await aenqueue("free", {"n": 1}, queue="q"), *await aenqueue_many([NewJob("free", {"n": 2})])]
    stored = [one async for one in Job.objects.order_by("pk")]
    assert [(one.queue, one.payload) for one in stored] == [("q", {"n": 1}), ("default", {"n": 2})]
    assert stored == made


def test_every_column_is_filled_by_the_statement() -> None:
    """A new column of the model does not get forgotten in the SQL: what enqueue stores equals the model's defaults."""
    made, plain = enqueue("free"), Job(type="free")
    for field in Job._meta.concrete_fields:
        if not isinstance(field, models.DateTimeField) and not field.primary_key:
            assert getattr(Job.objects.get(pk=made.pk), field.attname) == getattr(plain, field.attname), field.name
