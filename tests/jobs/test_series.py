"""Series: what may be saved, which slots become jobs, and that none becomes two."""

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from jobs import job as declare
from jobs import recurring
from jobs.errors import ConfigurationError, InvalidJob, TransitionRefused
from jobs.models import Job, Occurrence, Series
from jobs.queries import DjangoSession, WorkerSession
from jobs.registry import registry
from jobs.series import (
    edit_series,
    make_series,
    pause_series,
    preview,
    resume_series,
    run_now,
    series_after,
)
from tests.support import handler

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("free_type")]

MINUTE = timedelta(minutes=1)


def tick() -> list[Job]:
    """Make the jobs of the slots that are due, and return them by slot."""
    made = recurring.tick(DjangoSession())
    assert made is not None
    return list(Job.objects.filter(pk__in=made).order_by("scheduled_at"))


def downtime(series: Series, length: timedelta, start: datetime | None = None) -> datetime:
    """Pretend that nothing has looked at a series since so long ago; returns its anchor, on the same grid."""
    anchor = (start or timezone.now() - length).replace(microsecond=0)
    first = recurring.rule_of(interval=series.interval, cron=series.cron, zone=series.zone, starts_at=anchor).after(
        anchor
    )
    Series.objects.filter(pk=series.pk).update(starts_at=anchor, last_slot=anchor, next_at=first)
    series.refresh_from_db()
    return anchor


# What may be saved


@pytest.mark.parametrize(
    ("fields", "field", "text"),
    [
        ({"cron": "0 0 31 2 *"}, "cron", "never"),
        ({"cron": "0 0 31 4,6 *"}, "cron", "never"),
        ({"interval": "5 minutes"}, "interval", "Interval '5 minutes' is not one"),
        ({"interval": "5m", "zone": "Europe/Pariss"}, "interval", "Time zone 'Europe/Pariss' is unknown"),
        ({}, "interval", "either an interval or a cron expression"),
        ({"interval": "5m", "cron": "* * * * *"}, "interval", "either an interval or a cron expression"),
        ({"cron": "* * * * *", "mode": "after"}, "mode", "use grid"),
        ({"interval": "5m", "overlap": "maybe"}, "overlap", "use allow or skip|use skip or allow"),
        ({"interval": "5m", "catch_up_limit": 0}, "catch_up_limit", "use 1 to 10,000"),
        ({"interval": "5m", "jitter": -1}, "jitter", "use seconds from 0"),
        ({"interval": "1y", "ends_at": timezone.now() + MINUTE}, "ends_at", "would never fire"),
        ({"interval": "5m", "priority": 9}, "priority", "use a number from 1"),
    ],
)
def test_what_could_never_fire_is_refused_when_it_is_saved(fields: dict[str, Any], field: str, text: str) -> None:
    """The refusal names the field, and nothing is stored."""
    with pytest.raises(InvalidJob, match=text) as caught:
        make_series("s", "free", **fields)
    assert (caught.value.field, Series.objects.count()) == (field, 0)


def test_a_weekday_beside_a_day_that_never_comes_is_a_rule() -> None:
    """By the usual cron rule either of the two is enough: Mondays in February."""
    assert all(slot.weekday() == 0 and slot.month == 2 for slot in preview(make_series("s", "free", cron="0 0 30 2 1")))


def test_two_series_cannot_have_one_name() -> None:
    """A name is what a series is known by."""
    make_series("s", "free", interval="5m")
    with pytest.raises(InvalidJob, match="A series is called 's' already"):
        make_series("s", "free", interval="6m")


def test_a_faulty_row_is_marked_and_stops_no_other() -> None:
    """A rule that was written past all checks says why it does not fire; the others do."""
    bad, good = make_series("bad", "free", cron="* * * * *"), make_series("good", "free", interval="1m")
    Series.objects.filter(pk=bad.pk).update(cron="0 0 31 2 *")
    for series in (bad, good):
        Series.objects.filter(pk=series.pk).update(next_at=timezone.now(), last_slot=timezone.now() - MINUTE)
    downtime(good, 2 * MINUTE)
    assert {made.series_id for made in tick()} == {good.pk}
    bad.refresh_from_db()
    assert "never" in bad.fault
    assert tick() == []


# Slots


def test_a_slot_makes_one_job_at_its_time() -> None:
    """The job knows the slot as the time for which it was meant, and the marker moves with it."""
    series = make_series("s", "free", {"n": 1}, interval="5m", priority=1, queue="q")
    anchor = downtime(series, timedelta(minutes=7))
    (made,) = tick()
    assert (made.scheduled_at, made.payload, made.priority, made.queue) == (anchor + 5 * MINUTE, {"n": 1}, 1, "q")
    series.refresh_from_db()
    assert (series.last_slot, series.next_at, series.last_job_id) == (
        anchor + 5 * MINUTE, anchor + 10 * MINUTE, made.pk
    )  # fmt: skip
    assert tick() == []


def test_a_slot_that_has_a_job_makes_no_second_one() -> None:
    """Even if the marker were set back, the slot is taken."""
    series = make_series("s", "free", interval="5m", overlap="allow")
    downtime(series, timedelta(minutes=7))
    assert len(tick()) == 1
    downtime(series, timedelta(), start=series.starts_at)
    assert tick() == []
    assert Occurrence.objects.count() == Job.objects.count() == 1


def test_many_that_tick_at_once_make_one_job_for_each_slot() -> None:
    """Whoever comes second sees that there is nothing left."""
    for number in range(20):
        downtime(make_series(f"s{number}", "free", interval="5m"), timedelta(minutes=7))
    barrier = threading.Barrier(4)

    def race() -> None:
        session = WorkerSession()
        barrier.wait(10)
        while recurring.tick(session) is None:
            pass
        session.close()

    threads = [threading.Thread(target=race) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert Job.objects.count() == Occurrence.objects.count() == 20


def test_after_a_downtime_one_run_makes_up_for_all_and_the_grid_goes_on() -> None:
    """A five-minute series that nobody looked at for 2 h 35 min runs once, and then at its next slot."""
    series = make_series("s", "free", interval="5m")
    anchor = downtime(series, timedelta(hours=2, minutes=37, seconds=30))
    (made,) = tick()
    assert made.scheduled_at == anchor + timedelta(hours=2, minutes=35)
    series.refresh_from_db()
    assert series.next_at == anchor + timedelta(hours=2, minutes=40)


def test_with_all_each_missed_slot_runs_up_to_the_limit() -> None:
    """A day of minutes, at most 100: the newest, each with its own time."""
    series = make_series("s", "free", interval="1m", catch_up="all", catch_up_limit=100)
    downtime(series, timedelta(days=1, seconds=30))
    made = tick()
    assert len(made) == 100
    assert {later.scheduled_at - one.scheduled_at for one, later in pairwise(made)} == {MINUTE}
    assert tick() == []


def test_with_skip_only_what_is_on_time_runs() -> None:
    """A missed slot is gone; one that a deploy put off by seconds is not missed."""
    series = make_series("s", "free", interval="1h", catch_up="skip")
    downtime(series, timedelta(hours=2, minutes=30))
    assert tick() == []
    downtime(series, timedelta(hours=1, seconds=2))
    assert len(tick()) == 1


def test_a_slot_is_left_out_while_an_earlier_run_goes_on() -> None:
    """With overlap it runs beside it; what was left out is counted."""
    for overlap, expected in (("skip", 0), ("allow", 1)):
        series = make_series(overlap, "free", interval="5m", overlap=overlap)
        downtime(series, timedelta(minutes=7))
        assert len(tick()) == 1
        Series.objects.filter(pk=series.pk).update(next_at=timezone.now())
        downtime(series, timedelta(), start=series.starts_at + MINUTE)
        assert len(tick()) == expected
        series.refresh_from_db()
        assert series.skipped == (not expected)


def test_a_run_by_hand_or_a_failure_moves_no_slot() -> None:
    """The grid is counted from the anchor, whatever happens to the runs."""
    series = make_series("s", "free", interval="5m")
    before = series.next_at
    made = run_now(series)
    assert (made.type, made.created) == ("free", True)
    series.refresh_from_db()
    assert series.next_at == before


def test_jitter_puts_off_the_start_and_not_the_slot() -> None:
    """What the handler is told is the slot."""
    series = make_series("s", "free", interval="5m", jitter=30)
    anchor = downtime(series, timedelta(minutes=7))
    (made,) = tick()
    assert made.scheduled_at == anchor + 5 * MINUTE
    assert timedelta() <= made.run_at - made.scheduled_at <= timedelta(seconds=30)


def test_a_series_ends_at_its_end() -> None:
    """No slot behind it becomes a job, and the preview shows none."""
    series = make_series("s", "free", interval="5m", ends_at=timezone.now() + timedelta(minutes=12))
    assert len(preview(series)) == 2
    downtime(series, timedelta(minutes=30))
    Series.objects.filter(pk=series.pk).update(ends_at=timezone.now() - timedelta(minutes=10))
    (made,) = tick()
    assert made.scheduled_at <= timezone.now() - timedelta(minutes=10)
    assert tick() == []


# After the end of the last


def test_a_series_of_mode_after_counts_from_the_end_of_its_run() -> None:
    """While a run goes on there is no next slot; how it ends does not matter."""
    series = make_series("s", "free", interval="10m", mode="after")
    (first,) = tick()
    series.refresh_from_db()
    assert (series.next_at, tick()) == (None, [])
    ended = timezone.now() - timedelta(minutes=4)
    Job.objects.filter(pk=first.pk).update(status="failed", finished_at=ended)
    assert tick() == []
    series.refresh_from_db()
    assert series.next_at == ended + timedelta(minutes=10)
    Series.objects.filter(pk=series.pk).update(next_at=timezone.now())
    assert len(tick()) == 1


def test_a_job_with_an_interval_is_the_first_of_its_series() -> None:
    """The next one follows its end."""
    from jobs import enqueue

    first = enqueue("free", {"n": 1})
    series_after(first, "30s")
    assert tick() == []
    Job.objects.filter(pk=first.pk).update(status="completed", finished_at=timezone.now() - MINUTE)
    (second,) = tick()
    assert (second.payload, second.type) == ({"n": 1}, "free")


# Pause and edit


def test_a_pause_is_not_made_up_for() -> None:
    """What was not due while it was paused does not run when it goes on."""
    series = make_series("s", "free", interval="5m")
    pause_series(series)
    downtime(series, timedelta(hours=1))
    assert (tick(), preview(series)) == ([], [])
    resume_series(series)
    assert tick() == []
    assert series.next_at > timezone.now()


def test_an_edit_counts_from_now() -> None:
    """A new rule fires at its next slot, not for what would have been its past."""
    series = make_series("s", "free", interval="1h")
    downtime(series, timedelta(minutes=30))
    edit_series(series, interval="1m")
    assert tick() == []
    assert timezone.now() < series.next_at <= timezone.now() + MINUTE


# Declared in code


@pytest.fixture
def declared() -> Iterator[None]:
    """A type that recurs, of the same name in each declaration."""
    yield
    registry.remove("nightly")


def sync() -> Series:
    """Write what the code declares, as a worker does at its start."""
    recurring.sync_declared(DjangoSession())
    return Series.objects.get(name="nightly")


@pytest.mark.usefixtures("declared")
def test_what_the_code_declares_is_kept_in_step_and_a_pause_survives_a_deploy() -> None:
    """A changed rule is taken over; paused stays paused; a declaration that is gone says so."""
    declare(name="nightly", cron="0 3 * * *", tz="Europe/Paris")(lambda: None)
    series = sync()
    assert (series.cron, series.zone, series.declared, series.paused) == ("0 3 * * *", "Europe/Paris", True, False)
    pause_series(series)
    registry.remove("nightly")
    declare(name="nightly", every="6h")(lambda: None)
    series = sync()
    assert (series.cron, series.interval, series.paused) == ("", "6h", True)
    assert series.next_at.hour % 6 == 0
    registry.remove("nightly")
    declare(name="nightly")(lambda: None)
    assert "declares no rule" in sync().fault


@pytest.mark.usefixtures("declared")
def test_a_declared_series_is_edited_in_the_code() -> None:
    """An edit elsewhere would be undone by the next deploy."""
    declare(name="nightly", every="6h")(lambda: None)
    with pytest.raises(TransitionRefused, match="is declared in code"):
        edit_series(sync(), interval="1m")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"every": "6 hours"}, "Interval '6 hours' is not one"),
        ({"cron": "0 0 31 2 *"}, "never"),
        ({"every": "1h", "cron": "* * * * *"}, "either every= or cron="),
        ({"every": "1h", "tz": "Nowhere"}, "Time zone 'Nowhere' is unknown"),
        ({"every": "1h", "overlap": "perhaps"}, "use skip or allow"),
    ],
)
def test_a_declaration_that_could_never_fire_is_refused(options: dict[str, Any], text: str) -> None:
    """The process does not start with it."""
    with pytest.raises(ConfigurationError, match=text):
        declare(name="wrong", **options)(lambda: None)


def test_a_handler_that_needs_arguments_cannot_recur_without() -> None:
    """It would fail at every slot."""
    with pytest.raises(ConfigurationError, match="cannot recur without arguments"), handler(needy, every="1h"):
        pass


def needy(name: str) -> None:
    """Need a name."""


def test_intervals_in_the_code_are_counted_from_one_midnight() -> None:
    """Every process agrees on the grid, and a day is one of the zone."""
    kind = declare(name="nightly", every="1d", tz="Europe/Paris")(lambda: None).type
    registry.remove("nightly")
    assert kind.schedule is not None
    assert kind.schedule.rule.after(datetime(2026, 7, 1, tzinfo=UTC)) == datetime(2026, 7, 1, 22, tzinfo=UTC)


def test_the_tables_refuse_two_jobs_for_one_slot() -> None:
    """By constraint, whatever the code does."""
    with connection.cursor() as cursor:
        cursor.execute("select count(*) from pg_constraint where conname = 'dilamme_occurrence_once'")
        assert cursor.fetchone() == (1,)
