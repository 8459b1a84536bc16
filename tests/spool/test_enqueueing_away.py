"""Jobs that are enqueued while the database is away: accepted, kept, made once, in order; or refused, clearly."""

import asyncio
import json
import threading
import uuid
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import DatabaseError, connections, transaction
from django.utils import timezone

from jobs import NewJob, Options, aenqueue, enqueue_many
from jobs.errors import InvalidPayload, SpoolFailed, SpoolFull
from jobs.models import Job
from jobs.spool.files import SpoolFile
from jobs.spool.forwarder import forwarder
from jobs.spool.records import SpooledJob
from tests.support import wait_until


def numbers() -> list[int]:
    """Return the payloads of all jobs, in the order in which workers would claim them."""
    return [job.payload["number"] for job in Job.objects.order_by("priority", "run_at", "created_at", "pk")]


def test_a_job_enqueued_during_an_outage_is_kept_and_made_later(gate, kind):
    """The caller gets the job with its id, marked as spooled; when the database is back it is there under that id."""
    gate.shut()
    job = kind.using(priority=1.5, queue="mail", max_attempts=7).enqueue(number=1)
    assert job.is_spooled
    gate.open()
    wait_until(Job.objects.exists)
    made = Job.objects.get()
    assert made.pk == job.pk
    assert (made.priority, made.queue, made.max_attempts, made.payload) == (1.5, "mail", 7, {"number": 1})
    assert abs(made.created_at - job.created_at) < timedelta(milliseconds=1)
    assert made.run_at == made.scheduled_at == made.created_at


def test_while_the_database_answers_nothing_is_spooled(gate, kind, spool: Path):
    """The spool costs nothing and makes no file before it is needed."""
    assert not kind.enqueue(number=1).is_spooled
    assert not spool.exists()


def test_the_order_is_kept_across_the_outage(gate, kind):
    """Before, during, while it is forwarded, after: jobs of one caller are claimed in the order they were enqueued."""
    for number in range(300):
        if number == 50:
            gate.shut()
        if number == 200:
            gate.open()
        kind.enqueue(number=number)
    wait_until(lambda: Job.objects.count() == 300)
    assert numbers() == list(range(300))


def test_many_threads_lose_and_double_nothing(gate, kind):
    """Eight threads enqueue through an outage that comes and goes: each job is made once."""
    accepted: list[uuid.UUID] = []

    def work() -> None:
        for number in range(40):
            accepted.extend(job.pk for job in kind.enqueue_many([{"number": number}] * 3))
        connections.close_all()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for _ in range(4):
        gate.shut()
        threading.Event().wait(0.05)
        gate.open()
        threading.Event().wait(0.05)
    for thread in threads:
        thread.join()
    wait_until(lambda: Job.objects.count() == len(accepted) and not forwarder.is_diverting)
    assert set(Job.objects.values_list("pk", flat=True)) == set(accepted)
    assert len(accepted) == 8 * 40 * 3


def test_a_time_in_the_future_is_kept(gate, kind):
    """What was asked for a certain time is due at that time, however long the outage."""
    gate.shut()
    at = timezone.now() + timedelta(days=2)
    kind.using(run_at=at).enqueue(number=1)
    gate.open()
    wait_until(Job.objects.exists)
    assert Job.objects.get().run_at == at


def test_a_host_whose_clock_is_ahead_puts_no_job_into_the_future(gate, kind, spool: Path):
    """What was accepted tomorrow, by a wrong clock, is due now."""
    ahead = timezone.now() + timedelta(days=1)
    job = SpooledJob(uuid.uuid4(), "remember", "default", 2.0, '{"number": 1}', 3, ahead, None)
    forwarder.keep({job.id: job.pack()})
    wait_until(Job.objects.exists)
    assert Job.objects.get().run_at <= timezone.now()


def test_a_bad_job_is_refused_as_always(gate, kind):
    """An outage lets nothing through that would be refused otherwise."""
    gate.shut()
    with pytest.raises(InvalidPayload, match="number"):
        kind.enqueue_many([{"number": "many"}])
    assert forwarder.status().jobs == 0


def test_inside_a_transaction_the_caller_is_told(gate, kind):
    """What belongs to a transaction cannot be kept apart from it."""
    with pytest.raises(DatabaseError), transaction.atomic():
        gate.shut()
        kind.enqueue(number=1)
    assert forwarder.status().jobs == 0


def test_a_job_that_waits_for_others_needs_the_database(gate, kind):
    """Whether its parents exist and how they ended only the database knows."""
    parent = kind.enqueue(number=1)
    gate.shut()
    with pytest.raises(DatabaseError):
        kind.using(depends_on=[parent.pk]).enqueue(number=2)
    assert forwarder.status().jobs == 0


def test_a_job_with_metadata_needs_the_database(gate, kind):
    """The spool keeps plain jobs: rather than lose what was attached the caller is told, also of one among many."""
    gate.shut()
    with pytest.raises(DatabaseError):
        kind.using(metadata={"tenant": "acme"}).enqueue(number=1)
    many = [NewJob("remember", {"number": 2}), NewJob("remember", {"number": 3}, Options(metadata={}))]
    with pytest.raises(DatabaseError):
        enqueue_many(many)
    assert forwarder.status().jobs == 0
    gate.open()
    enqueue_many(many)
    assert list(Job.objects.order_by("pk").values_list("metadata", flat=True)) == [None, {}]


def test_an_error_of_the_statement_is_no_outage(gate, kind):
    """A table that is not there is reported, not waited for."""
    with connections["default"].cursor() as cursor:
        cursor.execute("alter table dilamme_job rename to elsewhere")
    try:
        with pytest.raises(DatabaseError, match="dilamme_job"):
            kind.enqueue(number=1)
    finally:
        with connections["default"].cursor() as cursor:
            cursor.execute("alter table elsewhere rename to dilamme_job")
    assert forwarder.status().jobs == 0


def test_a_full_spool_says_so(gate, kind, settings):
    """Beyond the limit an enqueue raises with figures and the setting's name, and what was accepted is made."""
    settings.DILAMME = {**settings.DILAMME, "SPOOL_LIMIT": 2000}
    gate.shut()
    accepted = []
    with pytest.raises(SpoolFull, match=r"it keeps [0-9]+ records of 1,[0-9]{3} bytes.*SPOOL_LIMIT.* is 2,000"):
        accepted.extend(kind.enqueue(number=number).pk for number in range(100))
    accepted = forwarder.status().jobs
    assert accepted > 3
    gate.open()
    wait_until(lambda: Job.objects.count() == accepted)
    assert numbers() == list(range(accepted))


def test_many_at_once_are_kept_all_or_none(gate, kind, settings):
    """A call that does not fit leaves nothing behind."""
    settings.DILAMME = {**settings.DILAMME, "SPOOL_LIMIT": 2000}
    gate.shut()
    with pytest.raises(SpoolFull):
        kind.enqueue_many([{"number": number} for number in range(100)])
    assert forwarder.status().jobs == 0


def test_a_directory_that_cannot_be_used_says_so(gate, kind, spool: Path):
    """Without a disk nothing is accepted."""
    spool.write_text("a file")
    gate.shut()
    with pytest.raises(SpoolFailed, match=str(spool)):
        kind.enqueue(number=1)


def test_async_code_spools_as_well(gate, kind):
    """`aenqueue` is the same call."""
    gate.shut()
    job = asyncio.run(aenqueue("remember", {"number": 1}))
    assert job.is_spooled
    gate.open()
    wait_until(Job.objects.exists)


def test_a_connection_that_broke_after_the_commit_doubles_nothing(gate, kind, spool: Path):
    """What the database has stored already is not stored again, and what ran is not set back."""
    job = kind.enqueue(number=1)
    Job.objects.update(priority=3.0)
    again = SpooledJob(job.pk, "remember", "default", 1.0, '{"number": 2}', 3, timezone.now(), None)
    forwarder.keep({again.id: again.pack()})
    wait_until(lambda: forwarder.status().jobs == 0 and not forwarder.is_diverting)
    assert list(Job.objects.values_list("pk", "priority", "payload")) == [(job.pk, 3.0, {"number": 1})]


def test_what_another_process_left_behind_is_adopted(gate, kind, spool: Path):
    """The next process that enqueues forwards the file of one that is gone, and removes it."""
    job = SpooledJob(uuid.uuid4(), "remember", "default", 2.0, '{"number": 1}', 3, timezone.now(), None)
    file = SpoolFile.make(str(spool), "jobs", 10_000)
    file.put({job.id: job.pack()})
    forwarder._attends_at = 0.0
    kind.enqueue(number=2)
    threading.Event().wait(0.3)
    assert numbers() == [2]  # it is in use
    file.abandon()
    forwarder._attends_at = 0.0
    kind.enqueue(number=3)
    wait_until(lambda: numbers() == [1, 2, 3])
    wait_until(lambda: list(spool.iterdir()) == [])


def test_what_the_database_refuses_is_set_aside_and_holds_up_no_other(gate, kind, spool: Path):
    """A record that breaks a constraint is kept for people, with the reason; its neighbours are made."""

    def job(number: int, priority: float) -> SpooledJob:
        payload = json.dumps({"number": number})
        return SpooledJob(uuid.uuid4(), "remember", "default", priority, payload, 3, timezone.now(), None)

    jobs = [job(1, 2.0), job(2, 99.0), job(3, 2.0)]
    unreadable = uuid.uuid4()
    forwarder.keep({job.id: job.pack() for job in jobs} | {unreadable: b'{"version": 99}'})
    wait_until(lambda: numbers() == [1, 3])
    wait_until(lambda: not forwarder.is_diverting)
    lines = [json.loads(line) for line in (spool / "refused.jsonl").read_text().splitlines()]
    assert [json.loads(line["record"]).get("id") for line in lines] == [str(jobs[1].id), None]
    assert "dilamme_job_priority_range" in lines[0]["error"]
    assert "version 99" in lines[1]["error"]
    assert forwarder.status().refused >= 2
