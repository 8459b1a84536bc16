"""The lifecycle on PostgreSQL, driven at random, against the model of `tests.lifecycle.model`."""

import os
import uuid
from collections.abc import Callable, Collection, Iterable
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from jobs import Options, Step, enqueue, lifecycle, make_workflow
from jobs.claims import Claim, Ended
from jobs.errors import InvalidJob, UniqueKeyHeld
from jobs.lifecycle import exchange
from jobs.models import Job
from jobs.outcomes import Cancelled, Failed, Outcome, Released, Snoozed, Succeeded
from jobs.states import can_change
from tests.lifecycle.graphs import Turns, what_is_wrong
from tests.lifecycle.model import DEAD, LIVE, Known, Model
from tests.support import handler

SOAK = bool(os.environ.get("DILAMME_SOAK"))
PARTS, EXAMPLES, STEPS = (20, 100, 60) if SOAK else (1, 35, 50)
TYPE, KEYS = "modelled", ["one", "two"]
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
HOUR = 3600.0
OUTCOMES = [
    Succeeded(), Failed("again", delay=HOUR), Failed("never", final=True), Snoozed(HOUR), Released("stopping"),
    Cancelled("stopped"), Cancelled("too late", expired=True),
]  # fmt: skip
NAMED_LATER = "a job that is cancelled because of one that is not dead"

rules = st.sampled_from(["cancel", "run"])
rarely = st.sampled_from([False, False, True])
keys = st.just({}) | st.fixed_dictionaries({
    "unique_key": st.sampled_from(KEYS),
    "unique_scope": st.sampled_from(["pending", "pending_and_processing"]),
    "on_conflict": st.sampled_from(["return", "replace", "raise"]),
})  # fmt: skip


class Lifecycle(RuleBasedStateMachine):
    """Graphs of a few jobs, one worker, and somebody who presses every button."""

    def __init__(self, turns: Turns) -> None:
        super().__init__()
        with connection.cursor() as cursor:
            for table in ("jobevent", "jobdependency", "unsettled", "job"):
                cursor.execute(f"delete from dilamme_{table}")
        turns.held.clear()
        self.turns = turns
        self.model = Model()
        self.before: dict[uuid.UUID, str] = {}
        self.stale: list[Claim] = []
        self.has_retried_roots_alone = False
        self.mark = 0

    # What is made

    @rule(
        data=st.data(),
        on_failure=rules,
        attempts=st.integers(1, 3),
        later=st.sampled_from([False, False, True]),
        unique=keys,
    )
    def enqueue(self, data: st.DataObject, on_failure: str, attempts: int, later: bool, unique: dict[str, str]) -> None:
        """Make a job, perhaps below others, perhaps with a key."""
        parents = data.draw(self.some_jobs(LIVE, 0, 3))
        key, lasts = unique.get("unique_key"), unique.get("unique_scope") != "pending"
        new = Known(uuid.uuid4(), self.next_mark(), attempts, dict.fromkeys(parents, on_failure), is_due=not later,
                    key=key, lasts=lasts)  # fmt: skip

        def make() -> Job:
            run_at = timezone.now() + timedelta(seconds=HOUR) if later else None
            return enqueue(TYPE, {"mark": new.mark}, depends_on=parents, on_failure=on_failure,
                           max_attempts=attempts, run_at=run_at, **unique)  # fmt: skip

        if self.model.dead_parents(new):
            with pytest.raises(InvalidJob, match="would never run"):
                make()
        elif key and (holder := self.model.holder_of(key)):
            self.meet(holder, new, unique["on_conflict"], make)
        else:
            job = make()
            assert job.created
            new.id = job.pk
            self.model.add(new)

    def meet(self, holder: Known, new: Known, on_conflict: str, make: Callable[[], Job]) -> None:
        """Enqueue with a key that another job holds."""
        if on_conflict == "raise":
            with pytest.raises(UniqueKeyHeld, match=str(holder.id)) as caught:
                make()
            assert caught.value.job_id == holder.id
            return
        job = make()
        assert (job.pk, job.created) == (holder.id, False)
        if on_conflict == "replace" and holder.status == "pending" and holder.attempt == 0:
            holder.mark, holder.is_due = new.mark, new.is_due

    @rule(data=st.data(), size=st.integers(1, 5))
    def make_workflow(self, data: st.DataObject, size: int) -> None:
        """Make a graph whose jobs may wait for each other and for one outside."""
        names = [f"n{n}" for n in range(size)]
        after = [data.draw(self.some(names[:n], 0, 2)) for n in range(size)]
        outside = data.draw(self.some_jobs(LIVE, 0, 1))
        on_failure = [data.draw(rules) for _ in names]
        marks = [self.next_mark() for _ in names]
        steps = {
            name: Step(TYPE, {"mark": marks[n]}, after[n],
                       Options(on_failure=on_failure[n], depends_on=outside if n == 0 else ()))
            for n, name in enumerate(names)
        }  # fmt: skip
        if outside and on_failure[0] == "cancel" and self.model.jobs[outside[0]].status in DEAD:
            with pytest.raises(InvalidJob, match="would never run"):
                make_workflow(steps)
            return
        made = make_workflow(steps)
        for n, name in enumerate(names):
            ids = [*(made.jobs[other].pk for other in after[n]), *(outside if n == 0 else ())]
            self.model.add(Known(made.jobs[name].pk, marks[n], parents=dict.fromkeys(ids, on_failure[n]),
                                 workflow=made.id))  # fmt: skip

    # What a worker does

    @precondition(lambda self: any(job.is_ready for job in self.model.jobs.values()))
    @rule(room=st.sampled_from([1, 2, 1000]))
    def claim(self, room: int) -> None:
        """Take what is due, up to so many: the oldest, as of several that came back together any may be first."""
        Job.objects.filter(status="pending", run_at__lte=timezone.now()).update(run_at=LONG_AGO)
        ready = {job.id for job in self.model.jobs.values() if job.is_ready}
        taken = {claim.id for claim in self.turns.claim(room)}
        assert taken <= ready
        assert len(taken) == min(room, len(ready))
        self.model.claim(taken)

    @precondition(lambda self: self.turns.held or any(job.is_ready for job in self.model.jobs.values()))
    @rule(data=st.data(), outcomes=st.lists(st.sampled_from(OUTCOMES), min_size=1, max_size=5))
    def run(self, data: st.DataObject, outcomes: list[Outcome]) -> None:
        """End some runs in any way, after a claim if there is none."""
        if not self.turns.held:
            self.claim(1000)
            self.they_agree()
        for outcome in outcomes[: len(self.turns.held)]:
            id_ = data.draw(st.sampled_from(sorted(self.turns.held)))
            self.turns.end(id_, outcome)
            self.model.end(id_, outcome)
            self.they_agree()

    @precondition(lambda self: self.turns.held)
    @rule(data=st.data())
    def ask_to_stop(self, data: st.DataObject) -> None:
        """Cancel what runs; asked again, it is the same."""
        ids = data.draw(self.some(sorted(self.turns.held), 1, 2))
        for _ in range(2):
            assert lifecycle.cancel(ids, actor="ada").changed == dict.fromkeys(ids, "processing")
        assert self.model.cancel(ids) == set()

    @precondition(lambda self: self.turns.held)
    @rule(data=st.data())
    def lose(self, data: st.DataObject) -> None:
        """Lose the worker of some runs; what it says of them later counts for nothing."""
        lost = data.draw(self.some(sorted(self.turns.held), 1, 3))
        Job.objects.filter(pk__in=lost).update(started_at="2020-01-01T00:00Z")
        lifecycle.rescue(self.turns.session)
        lifecycle.settle_rest(self.turns.session)
        for id_ in lost:
            self.stale.append(self.turns.held.pop(id_))
            self.model.end(id_, Failed("lost"))

    @precondition(lambda self: self.stale)
    @rule(data=st.data(), outcome=st.sampled_from(OUTCOMES))
    def end_too_late(self, data: st.DataObject, outcome: Outcome) -> None:
        """Hand in a run whose claim was lost: nothing is written, and it is reported."""
        again = [claim for claim in self.stale if claim.id in self.turns.held]  # somebody else runs it by now
        end = Ended(data.draw(st.sampled_from(again or self.stale)), outcome, 0.1)
        assert exchange(self.turns.session, self.turns.appetite, [end], 0).recorded.lost == [end]

    @precondition(lambda self: any(not job.is_due for job in self.model.with_status("pending")))
    @rule()
    def let_time_pass(self) -> None:
        """Let the time come for which jobs wait."""
        Job.objects.filter(status="pending", run_at__gt=timezone.now()).update(run_at=timezone.now())
        for job in self.model.with_status("pending"):
            job.is_due = True

    # What somebody does

    @precondition(lambda self: self.model.with_status(*LIVE))
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        """Cancel some jobs in one call, whatever they do, and one that there never was."""
        ids, nobody = data.draw(self.some_jobs(LIVE, 1, 3)), uuid.uuid4()
        answer = lifecycle.cancel([*ids, nobody], actor="ada")
        late = {id_ for id_ in ids if self.model.jobs[id_].status not in LIVE}
        also = self.model.cancel(ids)
        assert answer.changed == {id_: self.model.jobs[id_].status for id_ in ids if id_ not in late}
        assert answer.refused.keys() == late | {nobody}
        assert answer.also == dict.fromkeys(also, "cancelled")

    @precondition(lambda self: self.model.with_status(*DEAD))
    @rule(data=st.data(), downstream=st.sampled_from([True, True, True, False]))
    def retry(self, data: st.DataObject, downstream: bool) -> None:
        """Retry some jobs in one call, whatever they do."""
        ids = data.draw(self.some_jobs(DEAD, 1, 4))
        answer = lifecycle.retry(ids, actor="ada", downstream=downstream)
        self.has_retried_roots_alone |= not downstream
        self.follow_retry(ids, answer, downstream=downstream)

    @precondition(lambda self: self.workflows())
    @rule(data=st.data(), action=st.sampled_from(["cancel", "retry"]))
    def act_on_workflow(self, data: st.DataObject, action: str) -> None:
        """Cancel or retry a whole workflow."""
        id_ = data.draw(st.sampled_from(self.workflows()))
        members = [job for job in self.model.jobs.values() if job.workflow == id_]
        if action == "cancel":
            lifecycle.cancel_workflow(id_, actor="ada")
            self.model.cancel([job.id for job in members])
        else:
            answer = lifecycle.retry_workflow(id_, actor="ada")
            self.follow_retry([job.id for job in members if job.status == "failed"], answer, downstream=True)

    def follow_retry(self, ids: Collection[uuid.UUID], answer: lifecycle.Answer, *, downstream: bool) -> None:
        """Check a retry against the rules: nobody came back who must not, nobody is left out who may."""
        jobs = self.model.jobs
        wanted = {id_ for id_ in ids if jobs[id_].status in DEAD}
        below = {job.id for job in self.model.with_status("cancelled") if downstream and job.because in wanted} - wanted
        changed, also = set(answer.changed), set(answer.also)
        assert changed <= wanted
        assert also <= below
        self.model.bring_back(changed | also, by_hand=changed)
        for id_ in changed | also:
            assert not self.model.dead_parents(jobs[id_])
        for id_ in (wanted | below) - changed - also:
            assert self.model.why_dead(jobs[id_]), f"{id_} could have come back"
        assert answer.refused.keys() == set(ids) - changed
        for id_ in wanted - changed:
            assert answer.refused[id_] in self.model.why_dead(jobs[id_])
        self.name_anew((wanted | below) - changed - also)

    def name_anew(self, ids: Iterable[uuid.UUID]) -> None:
        """Take in because of whom jobs stay cancelled: a root that is dead, or nobody if only its key is in the way."""
        stored = dict(Job.objects.values_list("pk", "cancelled_because"))
        for job in (self.model.jobs[id_] for id_ in ids):
            if job.because is None:  # cancelled by hand, or failed
                continue
            allowed = self.model.roots_of(job) or {None}
            assert stored[job.id] in (allowed | {job.because} if self.has_retried_roots_alone else allowed)
        for job in (self.model.jobs[id_] for id_ in ids):
            job.because = stored[job.id]

    # What is always so

    @invariant()
    def they_agree(self) -> None:
        """Every job stands as the model says, and came there in a way that the table of changes knows."""
        rows = {row[0]: row[1:] for row in Job.objects.values_list(
            "pk", "status", "unmet", "attempt", "attempts_refunded", "payload__mark", "run_at", "cancelled_because",
            "cancel_requested_at")}  # fmt: skip
        assert rows.keys() == self.model.jobs.keys()
        now = timezone.now() + timedelta(seconds=60)
        for id_, job in self.model.jobs.items():
            status, unmet, attempt, refunded, mark, run_at, because, asked = rows[id_]
            if status == "cancelled" and self.before.get(id_) == "pending" and because is not None:
                assert because in self.model.roots_of(job)
                job.because = because
            found = (status, unmet, attempt, refunded, mark, because, asked is not None)
            assert found == (job.status, job.unmet, job.attempt, job.refunded, job.mark, job.because,
                             job.is_asked_to_stop)  # fmt: skip
            assert status != "pending" or (run_at <= now) == job.is_due
            before = self.before.get(id_, "pending")
            assert before == status or can_change(before, status)
        self.before = {id_: row[0] for id_, row in rows.items()}

    @invariant()
    def graphs_are_in_order(self) -> None:
        """Nobody waits for one that has ended, and nobody was forgotten."""
        wrong = what_is_wrong()
        if self.has_retried_roots_alone:
            wrong.pop(NAMED_LATER, None)
        assert wrong == {}

    @invariant()
    def keys_are_held_as_the_table_says(self) -> None:
        """An enqueue meets the job that holds the key, or nobody."""
        for key in KEYS:
            found = None
            try:
                with transaction.atomic():
                    enqueue(TYPE, unique_key=key, on_conflict="raise")
                    transaction.set_rollback(True)
            except UniqueKeyHeld as error:
                found = error.job_id
            holder = self.model.holder_of(key)
            assert found == (holder and holder.id)

    def teardown(self) -> None:
        """Let everything that is left succeed: in the end nobody waits."""
        Job.objects.filter(run_at__gt=timezone.now()).update(run_at=timezone.now())
        while Job.objects.filter(status__in=LIVE).exists():
            assert self.turns.claim() or self.turns.held, "somebody waits for ever"
            for id_ in list(self.turns.held):
                self.turns.end(id_)

    # Helpers

    def some(self, of: Iterable, least: int, most: int) -> st.SearchStrategy[list]:
        """Draw some of these, each once."""
        found = list(of)
        if not found:
            return st.just([])
        return st.lists(st.sampled_from(found), min_size=min(least, len(found)), max_size=most, unique=True)

    def some_jobs(self, preferred: Collection[str], least: int, most: int) -> st.SearchStrategy[list[uuid.UUID]]:
        """Draw some jobs: those with the statuses that matter most of the time, any of them now and then."""
        matter = [job.id for job in self.model.with_status(*preferred)]
        anyhow = self.some(self.model.jobs, least, most)
        return self.some(matter, least, most) | self.some(matter, least, most) | anyhow if matter else anyhow

    def workflows(self) -> list[uuid.UUID]:
        """Return the graphs there are."""
        return list({job.workflow: None for job in self.model.jobs.values() if job.workflow})

    def next_mark(self) -> int:
        """Return a number that no job has."""
        self.mark += 1
        return self.mark


@pytest.mark.parametrize("_part", range(PARTS))
def test_the_lifecycle_does_what_its_documentation_says(turns: Turns, _part: int) -> None:
    """Whatever is done in whatever order, statuses, counts, reasons and keys are those of the model."""
    limits = settings(deadline=None, max_examples=EXAMPLES, stateful_step_count=STEPS)
    with handler(lambda **_: None, name=TYPE, max_attempts=1, backoff=lambda _: HOUR):
        run_state_machine_as_test(lambda: Lifecycle(turns), settings=limits)


def test_what_waits_again_keeps_the_time_it_was_made_for(turns: Turns) -> None:
    """Only who is retried by hand runs now; a dependant that was made for tomorrow still is."""
    tomorrow = timezone.now() + timedelta(days=1)
    parent = enqueue("free")
    later, soon = (enqueue("free", depends_on=[parent.pk], run_at=run_at) for run_at in (tomorrow, None))
    lifecycle.cancel([parent.pk], actor="ada")
    lifecycle.retry([parent.pk], actor="ada")
    turns.run(parent)
    assert {claim.id for claim in turns.claim()} == {soon.pk}
    assert Job.objects.get(pk=later.pk).run_at == tomorrow
    lifecycle.cancel([later.pk], actor="ada")
    lifecycle.retry([later.pk], actor="ada")
    assert {claim.id for claim in turns.claim()} == {later.pk}
