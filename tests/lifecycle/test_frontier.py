"""Where a worker starts to look: past what it has claimed, and never past what it has not."""

import time
import uuid
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from jobs import enqueue, enqueue_many, lifecycle
from jobs.claims import Claim, Ended
from jobs.drafts import NewJob, Options
from jobs.lifecycle import Appetite
from jobs.models import Job
from jobs.outcomes import Released, Succeeded
from jobs.queries import DjangoSession, WorkerSession, connect, load
from tests.support import handler, wait_until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def kind():
    """A type to make jobs of."""
    with handler(lambda: None, name="thing") as task:
        yield task


@pytest.fixture
def appetite() -> Appetite:
    """A worker that remembers what it has claimed."""
    return Appetite(uuid.uuid4())


def claim(appetite: Appetite, room: int = 10) -> list[Claim]:
    """Claim with nothing to report."""
    return list(lifecycle.exchange(DjangoSession(), appetite, [], room).claimed.claims)


def made_late(**options: object) -> uuid.UUID:
    """Make a job that is a minute old, as if its transaction had taken that long to commit."""
    job = enqueue("thing", **options)
    Job.objects.filter(pk=job.pk).update(run_at=timezone.now() - timedelta(minutes=1))
    return job.pk


def test_a_job_that_appears_below_the_bound_is_found_once_a_notification_tells(appetite):
    """And is the next to be taken: it is the oldest."""
    enqueue("thing")
    assert len(claim(appetite)) == 1
    late = made_late()
    enqueue("thing")
    assert late not in [c.id for c in claim(appetite)]
    appetite.frontier.lower(("default", 2.0), (timezone.now() - timedelta(minutes=2)).timestamp())
    assert [c.id for c in claim(appetite)] == [late]


def test_a_claim_that_was_sent_before_a_notification_does_not_undo_it(appetite):
    """Its answer tells how far it came from where it began, and knows nothing of the older job that came meanwhile."""
    session = DjangoSession()
    enqueue("thing")
    claim(appetite)
    enqueue("thing")
    under_way = lifecycle.Exchange(session, appetite, [], 10)
    rows = session.fetch_together(under_way.fetches)
    late = made_late()
    appetite.frontier.lower(("default", 2.0), (timezone.now() - timedelta(minutes=2)).timestamp())
    assert len(under_way.read(rows).claimed.claims) == 1
    assert [c.id for c in claim(appetite)] == [late]


def test_a_look_at_the_database_finds_what_nobody_told_of(appetite):
    """Every poll asks for one."""
    enqueue("thing")
    claim(appetite)
    late = made_late()
    assert claim(appetite) == []
    appetite.frontier.doubt()
    assert [c.id for c in wait_until(lambda: claim(appetite), within=5)] == [late]


def test_a_look_finds_no_beginning_later_than_now(appetite):
    """A job made afterwards may be due before all that were there, and nobody may have told of it."""
    enqueue("thing", run_at=timezone.now() + timedelta(hours=1))
    assert claim(appetite) == []
    sooner = enqueue("thing")
    assert [c.id for c in claim(appetite)] == [sooner.pk]


def test_a_look_that_was_dear_is_postponed_and_not_forgotten(appetite):
    """It may cost a fiftieth of a worker's time; until then it stays wanted, and says when."""
    frontier = appetite.frontier
    frontier.look(_Slow())
    assert frontier.postponed_until is None
    frontier.doubt()
    assert not frontier.is_stale
    assert time.monotonic() < frontier.postponed_until < time.monotonic() + 60


class _Slow(DjangoSession):
    """A database that takes its time."""

    def fetch(self, statement: str, **parameters: object) -> list[tuple]:
        """Answer late."""
        time.sleep(0.2)
        return super().fetch(statement, **parameters)


def test_a_level_that_is_new_is_known_by_its_notification(appetite):
    """A queue or a priority that had no work before."""
    enqueue("thing")
    claim(appetite)
    job = enqueue("thing", queue="mail", priority=1.5)
    assert claim(appetite) == []
    appetite.frontier.lower(("mail", 1.5), 0.0)
    assert [c.id for c in claim(appetite)] == [job.pk]


def test_queues_that_are_not_served_are_not_learnt():
    """Whatever a notification says."""
    appetite = Appetite(uuid.uuid4(), ["mail"])
    enqueue("thing", queue="reports")
    appetite.frontier.lower(("reports", 2.0), 0.0)
    assert claim(appetite) == []


def test_one_level_does_not_move_the_bound_of_another(appetite):
    """A newer job of another priority was claimed; the older ones of this one are still found."""
    enqueue("thing", priority=3)
    for _ in range(3):
        enqueue("thing", priority=1)
    assert [c.priority for c in claim(appetite, 3)] == [1, 1, 1]
    assert [c.priority for c in claim(appetite, 3)] == [3]


def test_what_another_has_locked_does_not_lie_behind_the_bound(appetite):
    """Taken past a lock, the worker still finds the job once the lock is gone."""
    first, _ = enqueue("thing"), enqueue("thing")
    with connect() as other:
        other.autocommit = False
        other.execute("select from dilamme_job where id = %s for update", [first.pk])
        assert len(claim(appetite)) == 1
        other.rollback()
    assert [c.id for c in claim(appetite)] == [first.pk]


def test_another_job_in_its_place_does_not_hide_one_that_was_locked(appetite):
    """As many were taken as were seen, but not the same: the bound stays in front of the one that was passed over."""
    jobs = [enqueue("thing") for _ in range(3)]
    with connect() as other:
        other.autocommit = False
        other.execute("select from dilamme_job where id = %s for update", [jobs[0].pk])
        assert {c.id for c in claim(appetite, 2)} == {jobs[1].pk, jobs[2].pk}
        other.rollback()
    assert [c.id for c in claim(appetite, 2)] == [jobs[0].pk]


def test_a_hand_back_that_keeps_its_age_is_taken_again(appetite):
    """Its notification names the age, so it is found at once, by whoever hears it."""
    enqueue("thing")
    (mine,) = claim(appetite)
    enqueue("thing")
    claim(appetite)
    with connect() as listener:
        listener.execute("listen dilamme_wakeup")
        lifecycle.exchange(DjangoSession(), appetite, [Ended(mine, Released("later"))], 0)
        (heard,) = listener.notifies(timeout=5, stop_after=1)
    queue, priority, since = heard.payload.split(" ")
    assert float(since) <= mine.run_at
    appetite.frontier.lower((queue, float(priority)), float(since))
    assert [c.id for c in claim(appetite)] == [mine.id]


def test_dead_rows_under_an_old_snapshot_are_not_walked(appetite):
    """With thousands of jobs done that cannot be cleaned away, a claim touches a fraction of their blocks."""
    enqueue_many([NewJob("thing", {}, Options())] * 4000)
    session = WorkerSession()
    with connect() as holder:
        holder.execute("begin isolation level repeatable read")
        holder.execute("select count(*) from dilamme_job")
        done: list[Ended] = []
        while result := lifecycle.exchange(session, appetite, done, 200).claimed.claims:
            done = [Ended(taken, Succeeded(), 0.1) for taken in result]
        enqueue_many([NewJob("thing", {}, Options())] * 50)
        with_bound = _blocks(appetite.frontier.as_arrays())
        without = _blocks({**appetite.frontier.as_arrays(), "sinces": [0.0], "firsts": [uuid.UUID(int=0)]})
        holder.execute("rollback")
    session.close()
    assert with_bound < without / 5, (with_bound, without)


def _blocks(arrays: dict[str, list]) -> int:
    """Return how many blocks a claim touches to find its jobs; it is rolled back."""
    parameters = {"worker": uuid.uuid4(), "room": 50, "step": 30.0, "decrement": 1.0, "thresholds": [0.0] * 3, **arrays}
    with connect() as raw:
        raw.autocommit = False
        ((plan,),) = raw.execute(f"explain (analyze, buffers, format json) {load('claim')}", parameters).fetchall()
        raw.rollback()
    todo, found = [plan[0]["Plan"]], 0
    while todo:
        node = todo.pop()
        todo += node.get("Plans", [])
        if node.get("Index Name") == "dilamme_job_ready":
            found += node["Shared Hit Blocks"] + node["Shared Read Blocks"]
    return found


def test_a_claim_is_one_statement_while_the_frontier_is_known(appetite):
    """No look at the database, no transaction of its own: what an idle worker waits for."""
    enqueue("thing")
    claim(appetite)
    enqueue("thing")
    statements = _Counter()
    with connection.execute_wrapper(statements):
        assert len(claim(appetite)) == 1
    assert [text.split()[1] for text in statements.seen if not text.startswith("SAVEPOINT")] == ["head"]


class _Counter:
    """Notes the statements that go through Django's connection."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def __call__(self, execute, sql, params, many, context):
        """Note one, and run it."""
        self.seen.append(sql)
        return execute(sql, params, many, context)
