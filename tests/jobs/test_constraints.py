"""Impossible rows are refused by PostgreSQL itself, whoever writes them: one case or more for each constraint."""

import functools
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import DatabaseError, IntegrityError, connection, transaction

from jobs.limits import ATTEMPTS_LIMIT, HIGH, LOW, NAME_LIMIT
from jobs.models import IdempotencyKey, Job, JobDependency, JobEvent, Occurrence, Queue, Series, Worker
from jobs.states import FINAL, EventKind, Status

pytestmark = pytest.mark.django_db

NOW = datetime(2030, 1, 2, tzinfo=UTC)
ID = uuid.UUID(int=5)

# Statuses with what they need besides
FITTING: dict[str, dict[str, Any]] = {
    "pending": {},
    "processing": {"worker_id": ID, "attempt": 1},
    "completed": {"finished_at": NOW},
    "failed": {"finished_at": NOW},
    "cancelled": {"finished_at": NOW},
}


def make_job(**fields: Any) -> Job:
    """Write a row of a job as it is given."""
    return Job.objects.create(**{"type": "t", **fields})


def make_edge(**fields: Any) -> JobDependency:
    """Write an edge between two jobs, or as it is given."""
    return JobDependency.objects.create(**{"child": make_job(), "parent": make_job(), **fields})


def make_same_edge_twice() -> None:
    """Write an edge twice."""
    edge = make_edge()
    make_edge(child=edge.child, parent=edge.parent)


def make_edge_to_itself() -> None:
    """Write an edge from a job to itself."""
    job = make_job()
    make_edge(child=job, parent=job)


def make_event(**fields: Any) -> JobEvent:
    """Write a line of history."""
    return JobEvent.objects.create(**{"job": make_job(), "kind": "completed", "attempt": 1, **fields})


def make_key(**fields: Any) -> IdempotencyKey:
    """Write an idempotency key with its answer."""
    return IdempotencyKey.objects.create(
        **{"client": "c", "key": "k", "digest": "d", "status": 201, "answer": "{}", **fields}
    )


def make_series(**fields: Any) -> Series:
    """Write a series as it is given."""
    return Series.objects.create(**{"name": "s", "type": "t", "interval": "5m", "last_slot": NOW, **fields})


def make_same_slot_twice() -> None:
    """Write a slot of a series twice."""
    series = make_series()
    for _ in range(2):
        Occurrence.objects.create(series=series, slot=NOW, job_id=ID)


def make_queue(**limits: Any) -> Queue:
    """Write a queue with these limits."""
    return Queue.objects.create(name="q", **limits)


def of_series(name: str, **fields: Any) -> Any:
    """Return a case: the constraint's name, and a series that it refuses."""
    return pytest.param(name, lambda: make_series(**fields), id=f"{name.removeprefix('dilamme_')}-{fields}")


def of_job(name: str, **fields: Any) -> Any:
    """Return a case: the constraint's name, and a row that it refuses."""
    shown = ",".join(f"{key}={value}" for key, value in fields.items())
    return pytest.param(name, lambda: make_job(**fields), id=f"{name.removeprefix('dilamme_job_')}-{shown}")


REFUSED = [
    of_job("dilamme_job_fits_its_status", status="paused"),
    of_job("dilamme_job_fits_its_status", status=""),
    *(of_job("dilamme_job_fits_its_status", status=status) for status in sorted(FINAL)),
    of_job("dilamme_job_fits_its_status", status="pending", finished_at=NOW),
    of_job("dilamme_job_fits_its_status", status="processing", worker_id=ID, finished_at=NOW),
    of_job("dilamme_job_fits_its_status", status="processing"),
    of_job("dilamme_job_fits_its_status", status="pending", worker_id=ID),
    *(of_job("dilamme_job_fits_its_status", status=status, finished_at=NOW, worker_id=ID) for status in sorted(FINAL)),
    of_job("dilamme_job_priority_range", priority=0.999),
    of_job("dilamme_job_priority_range", priority=3.001),
    of_job("dilamme_job_priority_range", priority=float("nan")),
    of_job("dilamme_job_priority_range", priority=float("inf")),
    of_job("dilamme_job_attempts_range", attempt=-1),
    of_job("dilamme_job_attempts_range", attempts_refunded=-1),
    of_job("dilamme_job_attempts_range", attempt=1, attempts_refunded=2),
    of_job("dilamme_job_max_attempts_range", max_attempts=0),
    of_job("dilamme_job_max_attempts_range", max_attempts=1001),
    of_job("dilamme_job_unmet_not_negative", unmet=-1),
    of_job("dilamme_job_fits_its_status", unmet=1, **FITTING["processing"], status="processing"),
    of_job("dilamme_job_has_names", type=""),
    of_job("dilamme_job_has_names", queue=""),
    of_series("dilamme_series_has_one_rule", interval=""),
    of_series("dilamme_series_has_one_rule", cron="* * * * *"),
    of_series("dilamme_series_has_one_rule", interval="", cron="* * * * *", mode="after"),
    of_series("dilamme_series_words_known", mode="now"),
    of_series("dilamme_series_words_known", catch_up="some"),
    of_series("dilamme_series_words_known", overlap="maybe"),
    of_series("dilamme_series_ranges", catch_up_limit=0),
    of_series("dilamme_series_ranges", catch_up_limit=10_001),
    of_series("dilamme_series_ranges", jitter=-1),
    pytest.param("dilamme_series_name", lambda: [make_series() for _ in range(2)], id="series_name"),
    pytest.param("dilamme_occurrence_once", make_same_slot_twice, id="occurrence_once"),
    *(
        pytest.param("dilamme_queue_limits", lambda limits=limits: make_queue(**limits), id=f"queue_limits-{limits}")
        for limits in ({"concurrency": -1}, {"concurrency_per_key": 0}, {"rate": 0}, {"burst": 0})
    ),
    pytest.param(
        "dilamme_job_unique_key", lambda: [make_job(unique_key="k") for _ in range(2)], id="unique_key-pending"
    ),
    pytest.param(
        "dilamme_job_unique_key",
        lambda: [make_job(unique_key="k", status="processing", **FITTING["processing"]), make_job(unique_key="k")],
        id="unique_key-processing",
    ),
    pytest.param("dilamme_dependency_once", make_same_edge_twice, id="dependency_once"),
    pytest.param("dilamme_dependency_not_itself", make_edge_to_itself, id="dependency_not_itself"),
    pytest.param(
        "dilamme_dependency_on_failure_known", lambda: make_edge(on_failure="wait"), id="dependency_on_failure_known"
    ),
    pytest.param("dilamme_idempotency_once", lambda: [make_key() for _ in range(2)], id="idempotency_once"),
    *(
        pytest.param("dilamme_idempotency_answer_whole", functools.partial(make_key, **fields), id=f"answer-{fields}")
        for fields in ({"answer": None}, {"status": None}, {"status": 199}, {"status": 300})
    ),
    pytest.param("dilamme_event_kind_known", lambda: make_event(kind="noticed"), id="event_kind_known"),
]


@pytest.mark.parametrize(("name", "write"), REFUSED)
def test_an_impossible_row_is_refused_by_name(name: str, write: Callable[[], object]) -> None:
    """The constraint that was made for the case refuses it, and no other one by chance."""
    with pytest.raises(IntegrityError) as caught, transaction.atomic():
        write()
    assert caught.value.__cause__.diag.constraint_name == name  # type: ignore[union-attr]


def test_every_constraint_has_a_case() -> None:
    """A new constraint without a test of its own fails here."""
    of_models = {
        constraint.name
        for model in apps.get_app_config("dilamme").get_models()
        if not model._meta.proxy
        for constraint in model._meta.constraints
    }
    assert {case.values[0] for case in REFUSED} == of_models


def test_the_database_has_the_constraints_of_the_models() -> None:
    """No migration is missing, and none is left over from a constraint that is gone."""
    call_command("makemigrations", "--check", "--dry-run", verbosity=0)
    with connection.cursor() as cursor:
        cursor.execute(
            "select conname from pg_constraint "
            "where contype in ('c', 'u') and conrelid::regclass::text like 'dilamme%' "
            "union select indexrelid::regclass::text from pg_index "
            "where indisunique and indpred is not null and indrelid::regclass::text like 'dilamme%'"
        )
        assert {name for (name,) in cursor.fetchall()} == {case.values[0] for case in REFUSED}


@pytest.mark.parametrize("status", Status.values)
def test_every_status_has_a_possible_row(status: str) -> None:
    """The constraints refuse no state that a job can be in."""
    assert make_job(status=status, **FITTING[status]).pk


def test_the_ends_of_every_range_are_possible() -> None:
    """What the rest of the code accepts at most, the database accepts as well."""
    for priority in (HIGH, LOW):
        make_job(priority=priority)
    for attempts in (1, ATTEMPTS_LIMIT):
        make_job(max_attempts=attempts, attempt=attempts, attempts_refunded=attempts)
    make_job(type="t" * NAME_LIMIT, queue="q" * NAME_LIMIT, unmet=10_000)
    for kind in EventKind.values:
        make_event(kind=kind)


@pytest.mark.parametrize("field", ["type", "queue"])
def test_a_longer_name_than_the_rule_allows_does_not_fit(field: str) -> None:
    """The columns are as wide as names may be long, and no wider."""
    with pytest.raises(DatabaseError, match=rf"value too long for type character varying\({NAME_LIMIT}\)"):
        make_job(**{field: "x" * (NAME_LIMIT + 1)})


def test_jobs_of_one_id_are_refused() -> None:
    """An id that comes again, as from a client that repeats a request, makes no second job."""
    job = make_job()
    with pytest.raises(IntegrityError, match="dilamme_job_pkey"):
        make_job(pk=job.pk)


def test_an_edge_needs_both_its_jobs() -> None:
    """No child can wait for a row that was deleted."""
    edge = make_edge()
    edge.child.delete()
    assert not JobDependency.objects.filter(pk=edge.pk).exists()
    JobDependency.objects.create(child=make_job(), parent_id=uuid.uuid4())
    with pytest.raises(IntegrityError, match=r'Key \(parent_id\)=.* is not present in table "dilamme_job"'):
        connection.check_constraints()


def test_a_worker_that_is_gone_takes_no_job_with_it() -> None:
    """Claims outlive the rows of workers; rescue goes by the lease, not by a foreign key."""
    worker = Worker.objects.create(name="w", concurrency=1, lease_expires_at=NOW)
    job = make_job(status="processing", worker_id=worker.pk, attempt=1)
    worker.delete()
    job.refresh_from_db()
    assert job.worker_id is not None
