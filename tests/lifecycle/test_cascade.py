"""What the end of a job means for those that wait for it, whichever way it ended."""

import uuid
from collections.abc import Callable

import pytest

from jobs import Options, Step, enqueue, lifecycle, make_workflow
from jobs.errors import InvalidJob
from jobs.models import Job, JobDependency, Unsettled
from jobs.outcomes import Cancelled, Failed
from jobs.queries import DjangoSession
from tests.lifecycle.graphs import DEAD, Turns, make, reasons, statuses
from tests.support import history_of

CHAIN = {"a": [], "b": ["a"], "c": ["b"]}
DIAMOND = {"a": [], "left": ["a"], "right": ["a"], "join": ["left", "right"]}
TWO_ROOTS = {"a": [], "b": [], "both": ["a", "b"], "below": ["both"]}
LARGE = 5_000


def die(turns: Turns, job: Job) -> None:
    """Use up the attempts."""
    turns.run(job, DEAD)


def time_out(turns: Turns, job: Job) -> None:
    """Run too long, for the last time."""
    turns.run(job, Failed("Timed out: it ran longer than the 1 s."))


def be_cancelled_while_it_waits(_: Turns, job: Job) -> None:
    """Not be wanted any more."""
    lifecycle.cancel([job.pk], actor="user:ada")


def be_cancelled_while_it_runs(turns: Turns, job: Job) -> None:
    """Be asked to stop, and stop."""
    turns.claim()
    lifecycle.cancel([job.pk], actor="user:ada")
    turns.end(job, Cancelled("It was asked to stop."))


def be_lost(turns: Turns, job: Job) -> None:
    """Be claimed by a worker that nobody hears of again."""
    turns.claim()
    Job.objects.filter(pk=job.pk).update(started_at="2020-01-01T00:00Z")
    lifecycle.rescue(turns.session)
    lifecycle.settle_rest(turns.session)


def expire(turns: Turns, job: Job) -> None:
    """Not be started in time, as its worker says."""
    turns.run(job, Cancelled("It was not started in time.", expired=True))


ENDS = [die, time_out, be_cancelled_while_it_waits, be_cancelled_while_it_runs, be_lost, expire]


@pytest.mark.parametrize("end", ENDS)
def test_whichever_way_a_parent_ends_its_dependants_are_treated_alike(
    turns: Turns, end: Callable[[Turns, Job], None]
) -> None:
    """What waits with the default is cancelled, and what waits for that; what may run anyway does."""
    made = make_workflow({
        "p": Step("free"),
        "c": Step("free", after=["p"]),
        "below": Step("free", after=["c"]),
        "d": Step("free", after=["p"], options=Options(on_failure="run")),
        "after_c": Step("free", after=["c"], options=Options(on_failure="run")),
    })  # fmt: skip
    end(turns, made.jobs["p"])
    found = statuses(made)
    assert found.pop("p") in ("failed", "cancelled")
    assert found == {"c": "cancelled", "below": "cancelled", "d": "pending", "after_c": "pending"}
    assert reasons(made) == {"c": "p", "below": "p"}
    assert history_of(made.jobs["below"].pk) == ["cancelled"]
    assert not Unsettled.objects.exists()


def test_a_failure_that_will_be_retried_tells_nobody(turns: Turns) -> None:
    """Dependants are settled when their parent has ended, not while it waits for its next attempt."""
    made = make({"p": [], "c": ["p"]}, options=Options(max_attempts=2))
    turns.run(made.jobs["p"], Failed("once"))
    assert statuses(made) == {"p": "pending", "c": "blocked"}


def test_a_cascade_is_a_part_of_the_transaction_that_ended_the_parent(turns: Turns) -> None:
    """The first thousand are cancelled with it: there is no moment at which they could be forgotten."""
    made = make(CHAIN)
    turns.claim()
    (claim,) = turns.held.values()
    before = DjangoSession().fetch("in_workflow", workflow=made.id, statuses=["cancelled"], behind=uuid.UUID(int=0),
                                   room=9)  # fmt: skip
    lifecycle.exchange(turns.session, turns.appetite, [lifecycle_end(claim)], 0)
    assert (before, statuses(made)) == ([], {"a": "failed", "b": "cancelled", "c": "cancelled"})


def lifecycle_end(claim: object) -> object:
    """Return the end of a run that failed for good."""
    from jobs.claims import Ended

    return Ended(claim, DEAD, 0.1)  # type: ignore[arg-type]


@pytest.mark.parametrize("end", [die, be_cancelled_while_it_waits])
def test_retrying_the_root_revives_exactly_what_was_cancelled_because_of_it(
    turns: Turns, end: Callable[[Turns, Job], None]
) -> None:
    """Each edge is looked at anew; what was cancelled by hand stays so."""
    made = make({**DIAMOND, "by_hand": ["a"], "below": ["by_hand"]})
    lifecycle.cancel([made.jobs["by_hand"].pk], actor="user:ada")
    end(turns, made.jobs["a"])
    answer = lifecycle.retry([made.jobs["a"].pk], actor="user:ada")
    assert statuses(made) == {
        "a": "pending", "left": "blocked", "right": "blocked", "join": "blocked",
        "by_hand": "cancelled", "below": "cancelled",
    }  # fmt: skip
    assert set(answer.also) == {made.jobs[name].pk for name in ("left", "right", "join")}
    assert Job.objects.get(pk=made.jobs["join"].pk).unmet == 2
    for name in ("a", "left", "right", "join"):
        turns.run(made.jobs[name])
    assert statuses(made)["join"] == "completed"


def test_of_two_dead_parents_both_have_to_be_retried(turns: Turns) -> None:
    """What stays cancelled names the one that is still dead, and comes back with the other, in either order."""
    for first, second in (("a", "b"), ("b", "a")):
        made = make(TWO_ROOTS)
        turns.run(made.jobs["a"], DEAD)
        turns.run(made.jobs["b"], DEAD)
        assert reasons(made) == {"both": "a", "below": "a"}
        lifecycle.retry([made.jobs[first].pk], actor="a")
        assert statuses(made) == {first: "pending", second: "failed", "both": "cancelled", "below": "cancelled"}
        assert reasons(made) == {"both": second, "below": second}
        lifecycle.retry([made.jobs[second].pk], actor="a")
        assert statuses(made) == {"a": "pending", "b": "pending", "both": "blocked", "below": "blocked"}
        lifecycle.cancel_workflow(made.id, actor="a")


def test_a_refused_retry_in_the_middle_keeps_nobody_from_coming_back(turns: Turns) -> None:
    """It makes the job in the middle name its other dead parent, while those below still name the first."""
    for first, second in (("a", "b"), ("b", "a")):
        made = make(TWO_ROOTS | {"far": ["below"]})
        turns.claim()
        turns.end(made.jobs[first], DEAD)
        turns.end(made.jobs[second], DEAD)
        assert lifecycle.retry([made.jobs["both"].pk], actor="a").changed == {}
        for name in (first, second):
            lifecycle.retry([made.jobs[name].pk], actor="a")
        waiting = dict.fromkeys(("both", "below", "far"), "blocked")
        assert statuses(made) == {"a": "pending", "b": "pending"} | waiting
        lifecycle.cancel_workflow(made.id, actor="a")


def test_both_dead_parents_may_be_retried_at_once(turns: Turns) -> None:
    """Neither is in the way of the other."""
    made = make(TWO_ROOTS)
    turns.run(made.jobs["a"], DEAD)
    turns.run(made.jobs["b"], DEAD)
    lifecycle.retry_workflow(made.id, actor="a")
    assert statuses(made) == {"a": "pending", "b": "pending", "both": "blocked", "below": "blocked"}


def test_a_child_is_not_retried_while_its_parent_is_dead(turns: Turns) -> None:
    """It would wait for ever; the text says for whom. Together with its parent it comes back."""
    made = make(CHAIN)
    turns.run(made.jobs["a"], DEAD)
    child, parent = made.jobs["b"].pk, made.jobs["a"].pk
    answer = lifecycle.retry([child], actor="a")
    assert answer.refused == {
        child: f"It waits for the job {parent}, which is failed: retry that one, and this one follows."
    }
    assert lifecycle.retry([child, parent], actor="a").refused == {}
    assert statuses(made) == {"a": "pending", "b": "blocked", "c": "blocked"}


def test_a_root_can_be_retried_alone(turns: Turns) -> None:
    """Without its dependants, which can be retried by hand later on."""
    made = make(CHAIN)
    turns.run(made.jobs["a"], DEAD)
    lifecycle.retry([made.jobs["a"].pk], actor="a", downstream=False)
    assert statuses(made) == {"a": "pending", "b": "cancelled", "c": "cancelled"}
    lifecycle.retry([made.jobs["b"].pk], actor="a")
    assert statuses(made)["b"] == "blocked"
    turns.run(made.jobs["a"])
    turns.run(made.jobs["b"])
    assert statuses(made) == {"a": "completed", "b": "completed", "c": "cancelled"}


def test_a_root_that_fails_again_cancels_again(turns: Turns) -> None:
    """The edges that were looked at anew are as good as new ones."""
    made = make(DIAMOND)
    for _ in range(3):
        turns.run(made.jobs["a"], DEAD)
        assert set(reasons(made).values()) == {"a"}
        lifecycle.retry([made.jobs["a"].pk], actor="a")
    assert set(statuses(made).values()) == {"pending", "blocked"}


def test_a_failure_in_the_middle_leaves_what_is_done_alone(turns: Turns) -> None:
    """The root completed; what fails is the root of its own cascade."""
    made = make(DIAMOND)
    turns.run(made.jobs["a"])
    turns.run(made.jobs["left"], DEAD)
    assert statuses(made) == {"a": "completed", "left": "failed", "right": "processing", "join": "cancelled"}
    assert reasons(made) == {"join": "left"}
    turns.end(made.jobs["right"])
    lifecycle.retry([made.jobs["left"].pk], actor="a")
    assert Job.objects.get(pk=made.jobs["join"].pk).unmet == 1
    turns.run(made.jobs["left"])
    turns.run(made.jobs["join"])
    assert statuses(made)["join"] == "completed"


def test_cancelling_a_workflow_leaves_nothing_pending(turns: Turns) -> None:
    """What runs is asked to stop; what is done stays done."""
    made = make({**DIAMOND, "other": []})
    turns.run(made.jobs["a"])
    turns.claim()
    answer = lifecycle.cancel_workflow(made.id, actor="user:ada")
    assert statuses(made)["join"] == "cancelled"
    assert set(answer.changed) | set(answer.also) >= {made.jobs[name].pk for name in ("left", "right", "join", "other")}
    for name in ("left", "right", "other"):
        turns.end(made.jobs[name], Failed("stopped"))
    assert set(statuses(made).values()) <= {"completed", "cancelled", "failed"}


def test_what_a_crash_left_untold_is_told_by_whoever_comes_next(turns: Turns) -> None:
    """A job written down as unsettled has its dependants cancelled, even if nothing else says so."""
    made = make(CHAIN)
    Job.objects.filter(pk=made.jobs["a"].pk).update(status="cancelled", finished_at=made.jobs["a"].created_at)
    Unsettled.objects.create(job_id=made.jobs["a"].pk)
    lifecycle.settle_rest(turns.session)
    assert statuses(made) == dict.fromkeys("abc", "cancelled")
    assert not Unsettled.objects.exists()


SHAPES = {
    "chain": {f"n{n}": [f"n{n - 1}"] if n else [] for n in range(LARGE)},
    "fan out": {"n0": [], **{f"n{n}": ["n0"] for n in range(1, LARGE)}},
    "fan in": {**{f"n{n}": [] for n in range(LARGE)}, "last": [f"n{n}" for n in range(LARGE)]},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_large_graphs_are_made_cancelled_and_retried_whole(turns: Turns, shape: str) -> None:
    """A chain, a fan-out and a fan-in of 5,000 are no matter of depth, and nobody is forgotten."""
    made = make(SHAPES[shape])
    root = made.jobs["n0"]
    turns.claim(1)
    turns.held = {root.pk: turns.held[root.pk]}
    turns.end(root, DEAD)
    waiting = 1 if shape == "fan in" else LARGE - 1
    assert Job.objects.filter(cancelled_because=root.pk, status="cancelled").count() == waiting
    assert not Unsettled.objects.exists()
    answer = lifecycle.retry([root.pk], actor="a")
    assert len(answer.also) == waiting
    assert not Job.objects.filter(status="cancelled").exists()
    lifecycle.cancel([root.pk], actor="a")
    assert Job.objects.filter(status="cancelled").count() == waiting + 1


def test_a_child_cannot_be_made_below_a_dead_parent(turns: Turns) -> None:
    """A cascade that is over would not reach it."""
    made = make(CHAIN)
    turns.run(made.jobs["a"], DEAD)
    with pytest.raises(InvalidJob, match="has the status cancelled, so a job that depends on it would never run"):
        enqueue("free", depends_on=[made.jobs["b"].pk])
    assert JobDependency.objects.count() == 2
