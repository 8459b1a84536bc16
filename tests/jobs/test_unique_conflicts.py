"""What an enqueue whose unique key is held does, one by one and in bulk; and keys that are made from a payload."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from jobs import NewJob, Options, enqueue, enqueue_many
from jobs.errors import InvalidJob, UniqueKeyHeld
from jobs.models import Job, JobDependency
from jobs.queries import WorkerSession, connect
from tests.lifecycle.graphs import Turns
from tests.support import handler

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("free_type")]

TOMORROW = timezone.now() + timedelta(days=1)


@pytest.fixture
def turns() -> Iterator[Turns]:
    """A worker's turns, without a worker."""
    session = WorkerSession()
    yield Turns(session)
    session.close()


def new(n: int, **options: Any) -> NewJob:
    """Return a job to be made."""
    return NewJob("free", {"n": n}, Options(**options))


def stored() -> list[tuple[int, str | None]]:
    """Return number and key of every job, oldest first."""
    return list(Job.objects.order_by("id").values_list("payload__n", "unique_key"))


# What becomes of the second


def test_the_other_job_is_returned_as_it_is_stored() -> None:
    """With `created` False, and everything else that the caller would read."""
    first = enqueue("free", {"n": 1}, unique_key="k", priority=1, run_at=TOMORROW)
    second = enqueue("free", {"n": 2}, unique_key="k", priority=3)
    assert (second.pk, second.created, second.payload, second.priority) == (first.pk, False, {"n": 1}, 1)
    assert (first.created, second.run_at, stored()) == (True, TOMORROW, [(1, "k")])


def test_in_bulk_the_others_are_made_and_each_stands_at_its_place() -> None:
    """One duplicate spoils no batch."""
    held = enqueue("free", {"n": 0}, unique_key="b")
    made = enqueue_many([new(1, unique_key="a"), new(2, unique_key="b"), new(3), new(4, unique_key="c")])
    assert [(job.payload["n"], job.created) for job in made] == [(1, True), (0, False), (3, True), (4, True)]
    assert made[1].pk == held.pk
    assert stored() == [(0, "b"), (1, "a"), (3, None), (4, "c")]


def test_of_two_with_one_key_in_one_call_the_first_is_made() -> None:
    """The second gets it as if it had come a moment later; so it does in another scope."""
    made = enqueue_many([new(1, unique_key="a"), new(2, unique_key="a", unique_scope="pending")])
    assert [(job.payload["n"], job.created) for job in made] == [(1, True), (1, False)]
    assert stored() == [(1, "a")]


def test_of_two_with_one_key_in_one_call_the_last_replaces() -> None:
    """Both objects show what is stored, and the first says that it was made."""
    made = enqueue_many([new(n, unique_key="a", on_conflict="replace") for n in (1, 2, 3)])
    assert [(job.payload["n"], job.created) for job in made] == [(3, True), (3, False), (3, False)]
    assert stored() == [(3, "a")]


def test_of_two_with_one_key_in_one_call_neither_is_made_if_that_is_an_error() -> None:
    """The text names no job that never was."""
    with pytest.raises(UniqueKeyHeld) as caught:
        enqueue_many([new(n, unique_key="a", on_conflict="raise") for n in (1, 2)])
    assert str(caught.value) == "Two of these jobs have the unique key 'a'; give one of them another."
    assert (caught.value.job_id, stored()) == (None, [])


def test_an_error_leaves_nothing_of_the_batch() -> None:
    """All or none, and the text says who has the key."""
    held = enqueue("free", {"n": 0}, unique_key="b")
    with pytest.raises(UniqueKeyHeld) as caught:
        enqueue_many([new(1, unique_key="a"), new(2, unique_key="b", on_conflict="raise"), new(3)])
    assert str(caught.value) == f"The unique key 'b' is held by the job {held.pk}."
    assert (caught.value.field, caught.value.job_id) == ("unique_key", held.pk)
    assert stored() == [(0, "b")]


def test_a_job_that_was_not_made_has_no_edges() -> None:
    """What it was to wait for is forgotten with it; the others keep theirs."""
    parent, held = enqueue("free"), enqueue("free", unique_key="k")
    parents = [parent.pk]
    made = enqueue_many([new(1, unique_key="k", depends_on=parents), new(2, unique_key="l", depends_on=parents)])
    assert (made[0].pk, made[0].unmet, made[1].unmet) == (held.pk, 0, 1)
    assert [edge.child_id for edge in JobDependency.objects.all()] == [made[1].pk]


# Debouncing


def test_replace_gives_a_waiting_job_another_payload_and_time() -> None:
    """Nothing else of it changes; without a time it is due now."""
    first = enqueue("free", {"n": 1}, unique_key="k", run_at=TOMORROW, priority=1)
    later = TOMORROW + timedelta(hours=1)
    second = enqueue("free", {"n": 2}, unique_key="k", run_at=later, priority=3, on_conflict="replace")
    assert (second.pk, second.created, second.payload, second.run_at) == (first.pk, False, {"n": 2}, later)
    assert (second.scheduled_at, second.priority) == (later, 1)
    third = enqueue("free", {"n": 3}, unique_key="k", on_conflict="replace")
    assert (third.pk, third.payload, third.phase()) == (first.pk, {"n": 3}, "ready")


def test_replace_wakes_the_workers_for_what_is_due_now() -> None:
    """A job that waited for tomorrow and may run now is not found by a look at the clock."""
    enqueue("free", unique_key="k", queue="mail", run_at=TOMORROW)
    with connect() as listener:
        listener.execute("listen dilamme_wakeup")
        enqueue("free", unique_key="k", on_conflict="replace")
        (note,) = listener.notifies(timeout=5, stop_after=1)
    assert note.payload.startswith("mail 2 ")


def test_replace_lets_a_blocked_job_wait_on() -> None:
    """Its payload is another one; its parents are the same."""
    parent = enqueue("free")
    job = enqueue("free", {"n": 1}, unique_key="k", depends_on=[parent.pk])
    again = enqueue("free", {"n": 2}, unique_key="k", on_conflict="replace")
    assert (again.pk, again.payload, again.phase()) == (job.pk, {"n": 2}, "blocked")


def test_replace_never_touches_a_job_that_was_claimed(turns: Turns) -> None:
    """Neither while it runs nor while it waits for its next attempt."""
    from jobs.outcomes import Failed

    job = enqueue("free", {"n": 1}, unique_key="k")
    turns.claim()
    for _ in range(2):
        before = Job.objects.filter(pk=job.pk).values().get()
        assert enqueue("free", {"n": 2}, unique_key="k", on_conflict="replace").payload == {"n": 1}
        assert Job.objects.filter(pk=job.pk).values().get() == before
        if turns.held:
            turns.end(job, Failed("again"))


# Keys that are made from a payload


def test_names_make_a_key_whatever_their_order_and_container() -> None:
    """Of the payload only the names that were chosen count, and not in which order they were written."""
    first = enqueue("free", {"to": "ada", "subject": {"a": 1, "b": [1, 2]}, "n": 1}, unique=("to", "subject"))
    for names in (["subject", "to"], {"to", "subject"}, ("to", "to", "subject"), frozenset({"subject", "to"})):
        again = enqueue("free", {"n": 2, "subject": {"b": (1, 2), "a": 1}, "to": "ada"}, unique=names)
        assert (again.pk, again.created) == (first.pk, False)


@pytest.mark.parametrize("payload", [
    {"to": "bob", "subject": "hi"}, {"to": "ada", "subject": "ho"}, {"to": "ada", "subject": None},
    {"to": "ada", "subject": ["hi"]}, {"to": "hi", "subject": "ada"}, {"to": "ada", "subject": "hi "},
])  # fmt: skip
def test_other_values_make_another_key(payload: dict[str, Any]) -> None:
    """A value that only looks alike is another one."""
    enqueue("free", {"to": "ada", "subject": "hi"}, unique=["to", "subject"])
    assert enqueue("free", payload, unique=["to", "subject"]).created


def test_other_names_make_another_key() -> None:
    """One by recipient does not stand for one by recipient and subject."""
    payload = {"to": "ada", "subject": "hi"}
    assert len({enqueue("free", payload, unique=names).pk for names in (["to"], ["subject"], ["to", "subject"])}) == 3


def test_a_key_is_made_from_what_the_handler_will_get() -> None:
    """The payload is brought into form first: the text of a number and the number are one."""

    def typed(n: int) -> None:
        """Take a number."""

    with handler(typed) as task:
        unique = task.using(unique=["n"])
        assert unique.enqueue(5).pk == unique.enqueue("5").pk == unique.enqueue(n=5.0).pk


def test_names_that_change_in_their_list_are_read_anew() -> None:
    """Options may be used again; the list in them may be another one by then."""
    names = ["to"]
    options = Options(unique=names)
    payload = {"to": "ada", "n": 1}
    enqueue_many([NewJob("free", payload, options)])
    names.append("n")
    assert enqueue_many([NewJob("free", payload, options)])[0].created


# What is refused

KEY_TEXT = "use 1 to 200 printable characters."


@pytest.mark.parametrize(("options", "field", "text"), [
    ({"unique_key": ""}, "unique_key", f"unique_key is ''; {KEY_TEXT}"),
    ({"unique_key": "a\0b"}, "unique_key", f"unique_key is 'a\\x00b'; {KEY_TEXT}"),
    ({"unique_key": 5}, "unique_key", f"unique_key is 5; {KEY_TEXT}"),
    ({"unique_key": "x" * 201}, "unique_key", f"unique_key is '{'x' * 99}; {KEY_TEXT}"),
    ({"unique_key": "k", "unique": ["n"]}, "unique_key", "unique_key and unique are both given; use one of them."),
    ({"unique": "n"}, "unique", "unique is 'n'; use a list of names of the payload."),
    ({"unique": [5]}, "unique", "unique is [5]; use a list of names of the payload."),
    ({"unique": 5}, "unique", "unique is 5; use a list of names of the payload."),
    ({"unique": ["m"]}, "unique", "unique names 'm', which the payload does not have; it has n."),
    ({"unique_key": "k", "unique_scope": "ever"}, "unique_scope",
     "unique_scope is 'ever'; use pending or pending_and_processing."),
    ({"unique_key": "k", "on_conflict": "no"}, "on_conflict", "on_conflict is 'no'; use return, replace, raise."),
])  # fmt: skip
def test_what_makes_no_key_is_refused_with_the_way_out(options: dict[str, Any], field: str, text: str) -> None:
    """Before anything is stored."""
    with pytest.raises(InvalidJob) as caught:
        enqueue("free", {"n": 1}, **options)
    assert (caught.value.field, str(caught.value), stored()) == (field, text, [])


def test_names_that_can_be_read_only_once_are_refused() -> None:
    """They would be used up by the look at them, and every job would get the same key."""
    with pytest.raises(InvalidJob, match="use a list of names of the payload"):
        enqueue("free", {"n": 1}, unique=(name for name in ["n"]))
