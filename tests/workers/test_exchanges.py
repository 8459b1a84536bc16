"""Two exchanges under way: whatever becomes of either, nothing is lost and nothing is reported twice."""

import uuid
from collections.abc import Iterator

import psycopg
import pytest
from django.db import connection

from jobs import enqueue_many, lifecycle
from jobs.claims import Claim, Ended
from jobs.drafts import NewJob
from jobs.lifecycle import Appetite
from jobs.models import Job
from jobs.outcomes import Succeeded
from jobs.queries import CONTROL_CHANNEL, WorkerSession
from tests.support import WorkerThread, database_url, handler, history_of, status_of, wait_for_all, wait_until
from workers.exchanges import Exchanges
from workers.unreported import Unreported
from workers.worker import Plan, Worker

pytestmark = pytest.mark.django_db(transaction=True)

ENOUGH = 100  # outcomes, for a second exchange to be sent


class Desk:
    """A worker's exchanges, and what they told it."""

    def __init__(self) -> None:
        self.session = WorkerSession()
        appetite = Appetite(uuid.uuid4())
        self.worker_id = appetite.worker_id
        self.unreported = Unreported(appetite.worker_id)
        self.retries: list[float] = []
        self.adopted: list[Claim] = []
        self.exchanges = Exchanges(self.session, appetite, self.unreported, self.retries.append, self.adopted.extend)

    def claim(self, count: int) -> list[Claim]:
        """Make jobs and take them, in one exchange that is answered."""
        enqueue_many([NewJob("thing")] * count)
        assert self.exchanges.send(count)
        answer = self.exchanges.receive(lambda: False)
        return list(answer.exchanged.claimed.claims)

    def report(self, claims: list[Claim]) -> None:
        """Send that these have succeeded, and do not wait."""
        self.exchanges.report([Ended(claim, Succeeded(), 0.1) for claim in claims])
        assert self.exchanges.send(0)

    def answers(self) -> int:
        """Receive what is under way; returns how many ends were recorded."""
        recorded = 0
        while self.exchanges:
            if (answer := self.exchanges.receive(lambda: False)) is not None:
                recorded += len(answer.exchanged.recorded.changes)
        return recorded


@pytest.fixture
def desk() -> Iterator[Desk]:
    """A desk, and a type to make jobs of."""
    with handler(lambda: None, name="thing"):
        desk = Desk()
        yield desk
        desk.session.close()


@pytest.fixture
def holder() -> Iterator[psycopg.Connection]:
    """Another session, to hold locks with."""
    with psycopg.connect(database_url()) as other:
        yield other


def locked(holder: psycopg.Connection, claim: Claim) -> None:
    """Have the row of a job locked by another session."""
    holder.execute("select from dilamme_job where id = %s for update", [claim.id])


def test_a_second_is_sent_only_for_enough_and_never_a_third(desk, holder):
    """With little to report the next one waits, and grows."""
    claims = desk.claim(2)
    locked(holder, claims[0])
    desk.report(claims[:1])
    assert not desk.exchanges.may_send(ENOUGH - 1)
    assert desk.exchanges.may_send(ENOUGH)
    assert desk.exchanges.receive(lambda: True) is None, "it is not answered while the row is locked"
    desk.report(claims[1:])
    assert not desk.exchanges.may_send(ENOUGH)
    holder.rollback()
    assert desk.answers() == 2


def test_when_the_first_fails_the_second_stands_and_the_first_is_reported_again(desk, holder):
    """A lock timeout undoes one transaction, not both."""
    claims = desk.claim(2)
    locked(holder, claims[0])
    desk.session.fetch("ping")
    desk.session._ready().connection.execute("set lock_timeout = '50ms'")
    desk.report(claims[:1])
    desk.report(claims[1:])
    assert desk.answers() == 1
    assert len(desk.retries) == 1
    assert [end.claim for end in desk.unreported] == claims[:1]
    holder.rollback()
    assert wait_until(lambda: desk.exchanges.may_send(0))
    assert desk.exchanges.send(0)
    assert desk.answers() == 1
    assert [history_of(claim.id) for claim in claims] == [["completed"]] * 2


def test_when_the_connection_breaks_both_are_reported_again(desk, holder):
    """The fence sorts out what was committed already."""
    claims = desk.claim(2)
    locked(holder, claims[0])
    desk.report(claims[:1])
    desk.report(claims[1:])
    waits = (
        "select pg_terminate_backend(pid) from pg_stat_activity"
        " where wait_event_type = 'Lock' and datname = current_database()"
    )
    wait_until(lambda: holder.execute(waits).fetchone())
    holder.commit()
    assert desk.answers() == 0
    assert {end.claim for end in desk.unreported} == set(claims)
    wait_until(lambda: desk.exchanges.may_send(0))
    assert desk.exchanges.send(0)
    assert desk.answers() == 2
    assert desk.adopted == [], "what is to be reported is not to be run"
    assert [history_of(claim.id) for claim in claims] == [["completed"]] * 2


def test_claims_that_were_committed_as_the_connection_broke_are_adopted(desk):
    """Nobody else would run them while the lease stands."""
    desk.claim(1)
    enqueue_many([NewJob("thing")] * 2)
    assert desk.exchanges.send(10)
    wait_until(lambda: Job.objects.filter(status="processing").count() == 3)
    desk.session.close()
    assert desk.answers() == 0
    wait_until(lambda: desk.exchanges.may_send(0))
    assert desk.exchanges.send(0)
    assert {claim.id for claim in desk.adopted} == set(Job.objects.values_list("pk", flat=True))


def test_an_error_that_time_does_not_heal_is_raised_and_loses_nothing(desk):
    """The worker's loop ends with it, and hands back what it has."""
    (claim,) = desk.claim(1)
    with connection.cursor() as cursor:
        cursor.execute("alter table dilamme_job rename to elsewhere")
    try:
        assert desk.exchanges.send(1)
        with pytest.raises(psycopg.errors.UndefinedTable):
            desk.exchanges.receive(lambda: False)
        assert not desk.exchanges
    finally:
        with connection.cursor() as cursor:
            cursor.execute("alter table elsewhere rename to dilamme_job")
    desk.report([claim])
    assert desk.answers() == 1


def test_a_cancel_that_is_heard_while_its_job_is_under_way_reaches_it(desk):
    """The claim's row knew nothing of it, and the pool does not have the job yet."""
    enqueue_many([NewJob("thing")])
    assert desk.exchanges.send(1)
    job_id = uuid.uuid4()
    desk.exchanges.note_cancelled([job_id])
    answer = desk.exchanges.receive(lambda: False)
    assert answer.unwanted == {job_id}


def test_a_job_that_is_cancelled_between_its_claim_and_the_answer_does_not_start(settings):
    """The loop hears of it before it knows the job; the poll that would find out is an hour away."""
    settings.DILAMME = {**settings.DILAMME, "POLL_INTERVAL": 3600.0}
    with handler(lambda: None, name="thing") as task:
        job = task.enqueue()
        worker = Worker(Plan(concurrency=1))
        assert worker._exchanges.send(1)
        wait_until(lambda: Job.objects.filter(status="processing").exists())
        lifecycle.cancel([job.pk], actor="ada")
        worker._ears._hear(CONTROL_CHANNEL, f"cancel:{job.pk}")
        worker._heed()
        worker._exchange()
        assert (worker._pool.waiting, worker._pool.outcomes) == (0, 1), "it has ended before it could start"
        worker.stop()
        assert worker.run() == 0
    assert status_of(job.pk) == "cancelled"


def test_a_claim_that_is_undone_with_a_refused_outcome_is_made_again(settings):
    """What was due is still due, and no notification and no poll will say so again."""
    settings.DILAMME = {**settings.DILAMME, "POLL_INTERVAL": 3600.0}
    with handler(lambda: None, name="thing", max_attempts=1) as task:
        refused = task.enqueue()
        worker = Worker(Plan(concurrency=1))
        assert worker._exchanges.send(1)
        (claim,) = worker._exchanges.receive(lambda: False).exchanged.claimed.claims
        waiting = task.enqueue()
        worker._exchanges.report([Ended(claim, Succeeded("no JSON"), 0.1)])
        worker._exchange()
        assert status_of(refused.pk) == "failed"
        assert worker._hunger.is_felt
        worker._exchange()
        assert status_of(waiting.pk) == "processing"
        worker.stop()
        assert worker.run() == 0


def test_a_worker_reports_thousands_of_short_jobs_once_each(settings):
    """Batches follow each other without a pause, a broken connection among them."""
    with handler(lambda: None, name="thing"):
        worker = WorkerThread()
        try:
            for _ in range(4):
                enqueue_many([NewJob("thing")] * 2_000)
                with connection.cursor() as cursor:
                    cursor.execute(
                        "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()"
                        " and query like '%%dilamme_job%%' and datname = current_database()"
                    )
            wait_for_all("completed", 8_000)
        finally:
            worker.stop()
    with connection.cursor() as cursor:
        cursor.execute("select count(*), count(distinct job_id) from dilamme_jobevent where kind = 'completed'")
        assert cursor.fetchone() == (8_000, 8_000)
