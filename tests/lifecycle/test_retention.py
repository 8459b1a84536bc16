"""How history ends, and what a graph that is still alive keeps of it."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from jobs import enqueue
from jobs.ids import uuid7
from jobs.lifecycle import Retention, retry
from jobs.models import Job, JobDependency, JobEvent
from jobs.outcomes import Failed, Succeeded
from tests.lifecycle.graphs import DEAD, Turns, make

HOUR = 3600.0


@pytest.fixture(autouse=True)
def retention(settings: Any) -> None:
    """Keep what has ended for an hour."""
    settings.DILAMME = {"RETENTION": HOUR}


@pytest.fixture
def long_ago(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let ids be made as they were made a day ago: what is pruned is looked for along them."""
    day = int(86_400e9)
    from jobs import ids

    now = ids.time.time_ns
    monkeypatch.setattr(ids, "_last", 0)
    monkeypatch.setattr(ids.time, "time_ns", lambda: now() - day)


def end_long_ago(*jobs: Job) -> None:
    """Move the end of jobs back by a day."""
    ids = [job.pk for job in jobs]
    Job.objects.filter(pk__in=ids, finished_at__isnull=False).update(finished_at=timezone.now() - timedelta(days=1))


def prune(turns: Turns) -> int:
    """Go through all jobs once."""
    return Retention().prune(turns.session)


@pytest.mark.usefixtures("long_ago")
def test_what_ended_long_ago_is_removed_with_its_history(turns: Turns) -> None:
    """What ended lately, and what has not ended, stays."""
    old, lately, waiting = (enqueue("free") for _ in range(3))
    turns.claim()
    turns.end(old)
    turns.end(lately, DEAD)
    end_long_ago(old)
    assert prune(turns) == 1
    assert set(Job.objects.values_list("pk", flat=True)) == {lately.pk, waiting.pk}
    assert set(JobEvent.objects.values_list("job_id", flat=True)) == {lately.pk}


@pytest.mark.usefixtures("long_ago")
def test_a_finished_parent_is_kept_while_its_graph_is_alive(turns: Turns) -> None:
    """A child that waits for its next attempt still reads what its parent returned."""
    from jobs import Options
    from jobs.insights import parent_results

    made = make({"a": [], "b": ["a"], "c": ["b"]}, options=Options(max_attempts=3))
    turns.run(made.jobs["a"], Succeeded('{"rows": 7}'))
    turns.run(made.jobs["b"], Failed("later", delay=0))
    end_long_ago(*made.jobs.values())
    assert prune(turns) == 0
    assert parent_results(made.jobs["b"].pk)["a"].result == {"rows": 7}
    Job.objects.update(run_at=timezone.now() - timedelta(seconds=1))
    turns.run(made.jobs["b"])
    turns.run(made.jobs["c"])
    end_long_ago(made.jobs["a"], made.jobs["b"])
    assert prune(turns) == 0  # its last job has ended only now
    end_long_ago(*made.jobs.values())
    assert prune(turns) == 3
    assert (Job.objects.count(), JobDependency.objects.count(), JobEvent.objects.count()) == (0, 0, 0)


@pytest.mark.usefixtures("long_ago")
def test_many_are_removed_in_batches_and_unfinished_graphs_stay_whole(turns: Turns) -> None:
    """Each graph for itself, whatever stands between them."""
    done, alive = make({"a": [], "b": ["a"]}), make({"a": [], "b": ["a"]})
    for _ in range(1500):
        Job.objects.create(id=uuid7(), type="free", status="completed", finished_at=timezone.now() - timedelta(days=1))
    turns.run(done.jobs["a"])
    turns.run(done.jobs["b"])
    turns.run(alive.jobs["a"])
    end_long_ago(*done.jobs.values(), *alive.jobs.values())
    assert prune(turns) == 1502
    assert set(Job.objects.values_list("workflow_id", flat=True)) == {alive.id}


@pytest.mark.usefixtures("long_ago")
def test_what_is_retried_meanwhile_stays(turns: Turns) -> None:
    """A dead letter that somebody has brought back is no history."""
    dead = enqueue("free")
    turns.run(dead, DEAD)
    end_long_ago(dead)
    retry([dead.pk], actor="a")
    assert prune(turns) == 0


def test_without_a_retention_everything_is_kept(turns: Turns, settings: Any) -> None:
    """For ever is the default."""
    settings.DILAMME = {}
    done = enqueue("free")
    turns.run(done)
    end_long_ago(done)
    assert prune(turns) == 0
    assert Job.objects.filter(pk=done.pk).exists()
