"""Graphs under fire: many sessions end, cancel, retry and add jobs of the same graphs at once."""

import os
import random
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection, connections

from jobs import Options, Step, enqueue, lifecycle, make_workflow
from jobs.claims import Ended
from jobs.context import Context
from jobs.errors import InvalidJob
from jobs.lifecycle import exchange, settle_rest
from jobs.models import Job
from jobs.outcomes import Succeeded
from jobs.queries import WorkerSession, connect
from jobs.workflows import MadeWorkflow
from tests.lifecycle.graphs import DEAD, Turns, statuses, what_is_wrong
from tests.support import WorkerThread, handler, wait_until

SOAK = bool(os.environ.get("DILAMME_SOAK"))
ROUNDS = 50 if SOAK else 12
STORM = 120.0 if SOAK else 6.0  # seconds
PARENTS, FINISHERS = 20, 4


@pytest.fixture
def sessions() -> Iterator[list[WorkerSession]]:
    """A connection for each finisher."""
    made = [WorkerSession() for _ in range(FINISHERS)]
    yield made
    for session in made:
        session.close()


def end_at_once(turns: Turns, sessions: list[WorkerSession], parents: dict[uuid.UUID, bool]) -> None:
    """End these runs over several connections that start together; False means that one fails for good."""
    barrier = threading.Barrier(FINISHERS)
    shares = [list(parents.items())[n::FINISHERS] for n in range(FINISHERS)]

    def finish(session: WorkerSession, share: list[tuple[uuid.UUID, bool]]) -> None:
        barrier.wait(10)
        for id_, succeeds in share:
            end = Ended(turns.held.pop(id_), Succeeded() if succeeds else DEAD, 0.1)
            exchange(session, turns.appetite, [end], 0)

    with ThreadPoolExecutor(FINISHERS) as pool:
        for future in [pool.submit(finish, *pair) for pair in zip(sessions, shares, strict=True)]:
            future.result(30)


def test_a_join_of_twenty_is_released_or_cancelled_once(turns: Turns, sessions: list[WorkerSession]) -> None:
    """Whoever ends last releases the child, with one notification; a failure among them cancels it once."""
    with connect() as listener:
        listener.execute("listen dilamme_wakeup")
        for number in range(ROUNDS):
            fails = set(random.sample(range(PARENTS), 3)) if number % 2 else set()
            steps = {f"p{n}": Step("free") for n in range(PARENTS)}
            made = make_workflow({**steps, "join": Step("free", after=list(steps), options=Options(queue="joined"))})
            turns.claim()
            end_at_once(turns, sessions, {made.jobs[f"p{n}"].pk: n not in fails for n in range(PARENTS)})
            settle_rest(turns.session)
            join = Job.objects.get(pk=made.jobs["join"].pk)
            heard = [note.payload for note in listener.notifies(timeout=0.05) if note.payload.startswith("joined ")]
            if fails:
                assert (join.status, heard) == ("cancelled", [])
                assert list(join.events.values_list("kind", flat=True)) == ["cancelled"]
            else:
                assert (join.status, join.unmet, len(heard)) == ("pending", 0, 1)
                turns.run(join)
            assert what_is_wrong() == {}


def test_a_parent_more_while_the_others_end_is_counted_or_refused(turns: Turns, sessions: list[WorkerSession]) -> None:
    """A child that is made while its parents are ending never waits for ever."""
    for number in range(ROUNDS):
        made = make_workflow({f"p{n}": Step("free") for n in range(PARENTS)})
        turns.claim()
        ids = [made.jobs[f"p{n}"].pk for n in range(PARENTS)]
        children: list[Job] = []

        def add(parents: list[uuid.UUID] = ids, found: list[Job] = children) -> None:
            try:
                found.extend(enqueue("free", depends_on=parents[n : n + 10]) for n in range(10))
            except InvalidJob:
                pass  # a parent has failed by then: refused with the reason
            finally:
                connections.close_all()

        adder = threading.Thread(target=add)
        adder.start()
        end_at_once(turns, sessions, {id_: not number % 2 or n < PARENTS - 1 for n, id_ in enumerate(ids)})
        adder.join(30)
        settle_rest(turns.session)
        assert what_is_wrong() == {}
        found = Job.objects.filter(pk__in=[child.pk for child in children]).values_list("status", flat=True)
        assert set(found) <= {"pending", "cancelled"}
        lifecycle.cancel([c.pk for c in children], actor="a")


def graph_of_fifty() -> MadeWorkflow:
    """Make a graph of five layers, each job after three of the layer above; a few run whatever happens."""
    steps: dict[str, Step] = {}
    for layer in range(5):
        for n in range(10):
            above = [f"l{layer - 1}n{m}" for m in random.sample(range(10), 3)] if layer else []
            rule = "run" if random.random() < 0.1 else "cancel"
            steps[f"l{layer}n{n}"] = Step("stormy", {}, above, Options(on_failure=rule))
    return make_workflow(steps)


def stormy(ctx: Context) -> None:
    """Fail now and then, for good or for now."""
    if random.random() < 0.2:
        raise ValueError(ctx.attempt)


class Storm:
    """What people and programs do to graphs while they run; every error is kept."""

    def __init__(self, graphs: list[MadeWorkflow]) -> None:
        self.graphs = graphs
        self.errors: list[str] = []
        self.deeds: dict[str, int] = {}
        self._until = time.monotonic() + STORM

    def rage(self, deed: Callable[[MadeWorkflow], Any]) -> None:
        """Do it again and again to any graph."""
        while time.monotonic() < self._until:
            try:
                deed(random.choice(self.graphs))
                self.deeds[deed.__name__] = self.deeds.get(deed.__name__, 0) + 1
            except InvalidJob:
                pass  # a child below a dead parent: refused, as documented
            except BaseException as error:  # noqa: BLE001  the test shows them all
                self.errors.append(f"{deed.__name__}: {error!r}")
        connections.close_all()


def some_of(graph: MadeWorkflow, count: int) -> list[uuid.UUID]:
    """Return some of its jobs in no order."""
    return [job.pk for job in random.sample(list(graph.jobs.values()), count)]


def cancel_some(graph: MadeWorkflow) -> None:
    """Cancel jobs in bulk, as the admin does."""
    lifecycle.cancel(some_of(graph, 10), actor="storm")


def retry_some(graph: MadeWorkflow) -> None:
    """Retry jobs in bulk."""
    lifecycle.retry(some_of(graph, 20), actor="storm")


def retry_failed(graph: MadeWorkflow) -> None:
    """Retry what failed, with all that waits for it."""
    lifecycle.retry_workflow(graph.id, actor="storm")


def cancel_all(graph: MadeWorkflow) -> None:
    """Cancel a whole graph, and take it back."""
    lifecycle.cancel_workflow(graph.id, actor="storm")
    lifecycle.retry([job.pk for job in graph.jobs.values()], actor="storm")


def add_child(graph: MadeWorkflow) -> None:
    """Add a job below some others."""
    enqueue("stormy", depends_on=some_of(graph, 3), workflow=graph.id)


def sweep(_: MadeWorkflow) -> None:
    """Take jobs back from workers that are thought lost."""
    session = WorkerSession()
    try:
        lifecycle.rescue(session)
        lifecycle.settle_rest(session)
    except Exception as error:
        if getattr(error, "sqlstate", "") != "40P01":  # a sweep that met others comes again
            raise
    finally:
        session.close()


DEEDS = [cancel_some, retry_some, retry_failed, cancel_all, add_child, sweep]


@pytest.mark.django_db(transaction=True)
def test_a_storm_over_twenty_graphs_leaves_them_in_order(start_worker: Callable[..., WorkerThread]) -> None:
    """No error reaches a caller, and in the end nobody waits for a job that has ended."""
    with handler(stormy, name="stormy", max_attempts=2, backoff=lambda _: 0.01):
        storm = Storm([graph_of_fifty() for _ in range(20)])
        for _ in range(2):
            start_worker(concurrency=4)
        threads = [threading.Thread(target=storm.rage, args=[deed]) for deed in DEEDS]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(STORM + 60)
        assert storm.errors == []
        assert set(storm.deeds) == {deed.__name__ for deed in DEEDS}
        wait_until(lambda: not Job.objects.filter(status__in=["pending", "processing"]).exists(), within=120)
        wait_until(lambda: what_is_wrong() == {}, what=str(what_is_wrong()))
        assert all(
            status in ("completed", "failed", "cancelled") for g in storm.graphs for status in statuses(g).values()
        )
    with connection.cursor() as cursor:
        cursor.execute("select deadlocks from pg_stat_database where datname = current_database()")
        print("deadlocks resolved inside:", cursor.fetchone(), storm.deeds)  # noqa: T201  shown with -s
