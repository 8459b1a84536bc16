"""Jobs that wait for others: how the edges are made, and that no parent ends unnoticed while they are."""

import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connections, transaction

from jobs import NewJob, Options, enqueue, enqueue_many
from jobs.claims import Ended
from jobs.errors import InvalidJob, UnknownDependency
from jobs.lifecycle import Appetite, cancel, exchange
from jobs.models import Job, JobDependency
from jobs.outcomes import Succeeded
from jobs.queries import WorkerSession, connect
from tests.support import wait_until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("free_type")]

ROUNDS = 30


@pytest.fixture
def session() -> Iterator[WorkerSession]:
    """A worker's connection."""
    session = WorkerSession()
    yield session
    session.close()


def ended(status: str) -> Job:
    """Return a job that has ended with this status."""
    job = enqueue("free")
    Job.objects.filter(pk=job.pk).update(status=status, finished_at=job.created_at)
    return job


def edges_of(job: Job) -> list[tuple[uuid.UUID, str, bool]]:
    """Return parent, rule and whether it is settled, for each edge of a job."""
    return list(job.parent_edges.order_by("parent").values_list("parent", "on_failure", "settled"))


def refusal(*parents: uuid.UUID, **options: Any) -> str:
    """Return why a job with these parents is refused; nothing may have been stored."""
    before = Job.objects.count()
    with pytest.raises(InvalidJob) as caught:
        enqueue("free", depends_on=parents, **options)
    assert caught.value.field == "dependency_ids"
    assert (Job.objects.count(), JobDependency.objects.count()) == (before, 0)
    return str(caught.value)


# How edges are made


def test_a_job_counts_the_parents_that_it_waits_for() -> None:
    """Each parent is an edge, and each that is not settled counts."""
    first, second, done = enqueue("free"), enqueue("free"), ended("completed")
    child = enqueue("free", depends_on=[second.pk, done.pk, first.pk])
    assert child.unmet == Job.objects.get(pk=child.pk).unmet == 2
    assert edges_of(child) == [(first.pk, "cancel", False), (second.pk, "cancel", False), (done.pk, "cancel", True)]
    assert str(child.parent_edges.get(parent=first)) == f"{child.pk} after {first.pk}"


def test_a_parent_named_twice_counts_once() -> None:
    """A repeated id does not make a job wait for a second end that never comes."""
    parent = enqueue("free")
    child = enqueue("free", depends_on=[parent.pk, parent.pk])
    assert (child.unmet, edges_of(child)) == (1, [(parent.pk, "cancel", False)])


def test_a_set_of_parents_is_as_good_as_a_list() -> None:
    """The order of parents means nothing."""
    parents = {enqueue("free").pk for _ in range(3)}
    assert enqueue("free", depends_on=parents).unmet == 3


def test_a_job_whose_parents_have_all_completed_is_ready() -> None:
    """Nothing would ever tell it so later."""
    child = enqueue("free", depends_on=[ended("completed").pk])
    assert (child.unmet, child.phase()) == (0, "ready")


def test_many_jobs_may_share_parents(django_assert_num_queries: Any) -> None:
    """However many children and edges, one statement locks, one makes the jobs, one the edges."""
    parents = [enqueue("free").pk for _ in range(3)]
    new = [NewJob("free", {"n": n}, Options(depends_on=parents[:n])) for n in range(4)]
    with django_assert_num_queries(5):  # the two more begin and end the transaction
        children = enqueue_many(new)
    assert [child.unmet for child in children] == [0, 1, 2, 3]
    assert JobDependency.objects.count() == 6


def test_a_child_may_wait_for_a_child() -> None:
    """A chain is built from its beginning."""
    chain = [enqueue("free")]
    for _ in range(5):
        chain.append(enqueue("free", depends_on=[chain[-1].pk]))
    assert [job.unmet for job in chain] == [0, 1, 1, 1, 1, 1]
    assert [job.pk for job in chain] == sorted(job.pk for job in chain)


# Parents that are refused


def test_an_unknown_parent_is_named() -> None:
    """A job that waits for what does not exist would wait for ever."""
    id_ = uuid.uuid4()
    assert refusal(id_) == f"No job has the id {id_}: a job can only depend on jobs that exist."
    with pytest.raises(UnknownDependency):
        enqueue("free", depends_on=[id_])


def test_of_many_unknown_parents_five_are_named() -> None:
    """The list does not flood the answer."""
    ids = sorted(uuid.uuid4() for _ in range(8))
    shown = ", ".join(map(str, ids[:5]))
    assert refusal(*ids) == f"No job has the id {shown} and 3 more: a job can only depend on jobs that exist."


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_a_parent_that_has_failed_already_is_refused(status: str) -> None:
    """With the rule to cancel, the child would be dead on arrival."""
    parent = ended(status)
    assert refusal(parent.pk) == (
        f"The job {parent.pk} has the status {status}, so a job that depends on it would never run: retry it first, "
        f"or use on_failure='run'."
    )


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_a_parent_that_has_failed_does_not_matter_to_a_job_that_runs_anyway(status: str) -> None:
    """With the rule to run, its end is all that counts."""
    parent = ended(status)
    child = enqueue("free", depends_on=[parent.pk], on_failure="run")
    assert (child.unmet, edges_of(child)) == (0, [(parent.pk, "run", True)])


def test_one_refused_job_of_many_makes_none() -> None:
    """A batch whose last job has an unknown parent leaves nothing, edges included."""
    parent = enqueue("free")
    new = [NewJob("free", {}, Options(depends_on=[id_])) for id_ in (parent.pk, uuid.uuid4())]
    with pytest.raises(UnknownDependency):
        enqueue_many(new)
    assert (Job.objects.count(), JobDependency.objects.count()) == (1, 0)


# Parents that end meanwhile


def in_thread(work: Callable[[], Any]) -> Callable[[], Any]:
    """Return the work, with the thread's connection closed behind it."""

    def run() -> Any:
        try:
            return work()
        finally:
            connections.close_all()

    return run


def somebody_waits_for_a_lock() -> bool:
    """Whether a session of this database stands still until another one commits."""
    with connect() as database:
        waiting = "select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
        return database.execute(waiting).fetchone() is not None


def claimed(session: WorkerSession) -> tuple[Appetite, Ended]:
    """Make a parent, claim it, and return what records its success."""
    parent = enqueue("free", queue=f"q{uuid.uuid4().hex}")
    appetite = Appetite(uuid.uuid4(), [parent.queue])
    (claim,) = exchange(session, appetite, [], 1).claimed.claims
    return appetite, Ended(claim, Succeeded(), 0.1)


def test_a_parent_cannot_end_while_its_child_is_being_made(session: WorkerSession) -> None:
    """Until the edge is committed the end waits for it, and then finds it."""
    appetite, end = claimed(session)
    with ThreadPoolExecutor() as pool:
        with transaction.atomic():
            child = enqueue("free", depends_on=[end.claim.id])
            recording = pool.submit(exchange, session, appetite, [end], 0)
            wait_until(somebody_waits_for_a_lock)
            assert not recording.done()
        recording.result(timeout=20)
    child.refresh_from_db()
    assert (child.unmet, edges_of(child)) == (0, [(end.claim.id, "cancel", True)])


def test_a_child_made_while_its_parent_ends_sees_the_end(session: WorkerSession) -> None:
    """Whoever makes the child waits until the end is committed, and does not count that parent."""
    appetite, end = claimed(session)
    with ThreadPoolExecutor() as pool:
        with session.transaction():
            exchange(session, appetite, [end], 0)
            making = pool.submit(in_thread(lambda: enqueue("free", depends_on=[end.claim.id])))
            wait_until(somebody_waits_for_a_lock)
            assert not making.done()
        child = making.result(timeout=20)
    assert (child.unmet, edges_of(child)) == (0, [(end.claim.id, "cancel", True)])


def test_no_child_is_left_waiting_whoever_comes_first(session: WorkerSession) -> None:
    """Ends and children at the same moment, again and again: every child is released, once."""
    with ThreadPoolExecutor() as pool:
        for _ in range(ROUNDS):
            appetite, end = claimed(session)
            barrier = threading.Barrier(4)

            def make(parent: uuid.UUID = end.claim.id, barrier: threading.Barrier = barrier) -> Job:
                barrier.wait()
                return enqueue("free", depends_on=[parent])

            making = [pool.submit(in_thread(make)) for _ in range(3)]
            barrier.wait()
            exchange(session, appetite, [end], 0)
            for child in [future.result(timeout=20) for future in making]:
                child.refresh_from_db()
                assert (child.unmet, edges_of(child)) == (0, [(end.claim.id, "cancel", True)])


def test_no_child_is_left_waiting_for_a_parent_that_is_cancelled() -> None:
    """A cancellation at the same moment either is seen, and refuses the child, or releases it by its rule."""
    with ThreadPoolExecutor() as pool:
        for _ in range(ROUNDS):
            parent, barrier = enqueue("free"), threading.Barrier(2)

            def make(parent: Job = parent, barrier: threading.Barrier = barrier) -> Job:
                barrier.wait()
                return enqueue("free", depends_on=[parent.pk], on_failure="run")

            making = pool.submit(in_thread(make))
            barrier.wait()
            cancel([parent.pk], actor="test")
            child = making.result(timeout=20)
            child.refresh_from_db()
            assert (child.unmet, edges_of(child)) == (0, [(parent.pk, "run", True)])


def test_two_makers_of_children_do_not_wait_for_each_other() -> None:
    """The lock on a parent keeps its end away, and nobody else who depends on it."""
    parents = [enqueue("free").pk for _ in range(2)]
    with ThreadPoolExecutor() as pool, transaction.atomic():
        enqueue("free", depends_on=parents)
        other = pool.submit(in_thread(lambda: enqueue("free", depends_on=parents[::-1])))
        assert other.result(timeout=20).unmet == 2
