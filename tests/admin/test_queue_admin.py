"""Queues and types in the admin: limited, paused and let go by those who may."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from jobs import enqueue
from jobs.models import PausedType, Queue
from jobs.queues import limit_queue, pause_queue, pause_type, resume_queue
from tests.admin.acting import act, client_of, press, problems

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("types")]

QUEUES, TYPES = "admin:dilamme_queue", "admin:dilamme_pausedtype"


@pytest.fixture
def pauser(db: None) -> Client:
    """Return the client of somebody who may pause."""
    return client_of("view_queue", "view_pausedtype", "pause_queue")


def page_of(name: str) -> str:
    """Return the address of the page of a queue."""
    return reverse(f"{QUEUES}_change", args=[name])


def test_a_queue_is_limited(pauser: Client) -> None:
    """By a form that asks the service; an empty field is no limit."""
    pauser.post(reverse(f"{QUEUES}_add"), {"name": "mail", "concurrency": "3", "rate": "0.5"})
    queue = Queue.objects.get()
    assert (queue.name, queue.concurrency, queue.rate, queue.burst) == ("mail", 3, 0.5, None)
    pauser.post(page_of("mail"), {"concurrency": "", "concurrency_per_key": "2"})
    queue = Queue.objects.get()
    assert (queue.concurrency, queue.concurrency_per_key, queue.rate) == (None, 2, None)


@pytest.mark.parametrize(
    ("given", "field", "text"),
    [
        ({"burst": "5"}, "burst", "burst is given without a rate; give both."),
        ({"rate": "0"}, "rate", "use starts per second above 0"),
        ({"rate": "nan"}, "rate", "Enter a number."),
        ({"concurrency": "-1"}, "concurrency", "use a whole number from 0 to 1,000,000."),
        ({"concurrency": "9" * 30}, "concurrency", ""),
        ({"concurrency": "9" * 5000}, "concurrency", ""),
        ({"concurrency_per_key": "0"}, "concurrency_per_key", "use a whole number from 1 to 1,000,000."),
        ({"name": "two words"}, "name", "use 1 to 100 letters"),
    ],
)
def test_a_limit_that_is_none_is_refused_at_its_field(
    pauser: Client, given: dict[str, str], field: str, text: str
) -> None:
    """The form is shown again with the service's own words."""
    found = problems(pauser.post(reverse(f"{QUEUES}_add"), {"name": "mail", **given}))
    assert list(found) == [field]
    assert text in found[field][0]
    assert not Queue.objects.exists()


@pytest.mark.parametrize("way", [act, press])
def test_a_queue_is_paused_and_resumed(pauser: Client, way: Any) -> None:
    """From the list or from the page."""
    limit_queue("mail", concurrency=3)
    assert "Paused: mail." in way(pauser, "queue", "pause", "mail").text
    assert ">Paused</span>" in pauser.get(reverse(f"{QUEUES}_changelist")).text
    assert "Resumed: mail." in way(pauser, "queue", "resume", "mail").text
    queue = Queue.objects.get()
    assert (queue.paused, queue.concurrency) == (False, 3)


def test_queues_are_listed_with_their_jobs(pauser: Client, django_assert_max_num_queries: Any) -> None:
    """Those without a row stand below, and can be paused and limited from there; counting is one query for all."""
    for number in range(10):
        limit_queue(f"q{number}", concurrency=3)
    enqueue("free", queue="q1")
    enqueue("free", queue="plain")
    with django_assert_max_num_queries(8):
        response = pauser.get(reverse(f"{QUEUES}_changelist"))
    rows = {queue.name: queue.counts for queue in response.context["cl"].result_list}
    assert (rows["q1"], rows["q2"], "plain" in rows) == ((1, 0), (0, 0), False)
    assert f'<a href="{page_of("plain")}">plain</a>' in response.text
    assert '<td class="field-waiting">' not in pauser.get(page_of("plain")).text
    assert "Paused: plain." in press(pauser, "queue", "pause", "plain").text
    assert Queue.objects.get(name="plain").paused


def test_a_pause_that_is_over_is_not_shown(pauser: Client) -> None:
    """Nobody has to resume what goes on by itself."""
    pause_queue("mail", until=timezone.now() + timedelta(hours=1))
    assert [button.label for button in pauser.get(page_of("mail")).context["presses"]] == ["Resume"]
    Queue.objects.update(paused_until=timezone.now() - timedelta(hours=1))
    assert [button.label for button in pauser.get(page_of("mail")).context["presses"]] == ["Pause"]


def until_of(page: Any) -> dict[str, str]:
    """Return what a page of a queue sends back about its pause when nobody has touched it."""
    when = page.context["adminform"].form.initial.get("until")
    now = ["", ""] if when is None else f"{timezone.localtime(when):%Y-%m-%d %H:%M:%S}".split()
    return {f"{prefix}until_{part}": now[part] for prefix in ("", "initial-") for part in (0, 1)}


def test_a_queue_is_paused_until_a_time(pauser: Client) -> None:
    """On its page, which shows the time; emptied, the pause has no end. It is kept who did it, and limits stay."""
    limit_queue("mail", concurrency=3)
    sent = {"concurrency": "3", "until_0": "2090-01-02", "until_1": "03:04:05"}
    assert pauser.post(page_of("mail"), sent).status_code == 302
    queue = Queue.objects.get()
    assert (queue.paused, f"{queue.paused_until:%F %T %Z}") == (True, "2090-01-02 03:04:05 UTC")
    assert queue.concurrency == 3
    assert "Pause until" in LogEntry.objects.get().get_change_message()
    page = pauser.get(page_of("mail"))
    for name, value in until_of(page).items():  # also what it was, hidden
        assert f'name="{name}" value="{value}"' in page.text
    assert (until_of(page)["until_0"], until_of(page)["until_1"]) == ("2090-01-02", "03:04:05")
    pauser.post(page_of("mail"), {"concurrency": "3", **until_of(page), "until_0": "", "until_1": ""})
    queue = Queue.objects.get()
    assert (queue.paused, queue.paused_until) == (True, None)


def test_a_new_queue_may_begin_with_a_pause(pauser: Client) -> None:
    """Or without one."""
    pauser.post(reverse(f"{QUEUES}_add"), {"name": "mail", "until_0": "2090-01-02", "until_1": "03:04:05"})
    pauser.post(reverse(f"{QUEUES}_add"), {"name": "plain"})
    assert list(Queue.objects.order_by("name").values_list("name", "paused")) == [("mail", True), ("plain", False)]


@pytest.mark.parametrize("meanwhile", ["nothing", "resumed", "over", "paused"])
def test_a_pause_that_was_not_touched_stays_as_it_is(pauser: Client, meanwhile: str) -> None:
    """Who changes a limit neither pauses again what was resumed or is over, nor shortens what somebody else decided."""
    limit_queue("mail", concurrency=3)
    if meanwhile != "paused":
        pause_queue("mail", until=timezone.now() + timedelta(hours=1))
    sent = until_of(pauser.get(page_of("mail")))
    if meanwhile == "resumed":
        resume_queue("mail")
    elif meanwhile == "over":
        Queue.objects.update(paused_until=timezone.now() - timedelta(seconds=1))
    elif meanwhile == "paused":
        pause_queue("mail", until=timezone.now() + timedelta(hours=2))
    before = Queue.objects.values("paused", "paused_until").get()
    assert pauser.post(page_of("mail"), {"concurrency": "4", **sent}).status_code == 302
    assert Queue.objects.values("paused", "paused_until").get() == before
    assert Queue.objects.get().concurrency == 4


@pytest.mark.parametrize(
    ("sent", "text"),
    [
        ({"until_0": "2001-01-01", "until_1": "00:00"}, "use an aware time in the future."),
        ({"until_0": "soon", "until_1": "00:00"}, "Enter a valid date."),
        ({"until_0": "2090-01-02", "until_1": ""}, "Enter a valid time."),
    ],
)
def test_a_time_that_is_none_is_refused_at_its_field(pauser: Client, sent: dict[str, str], text: str) -> None:
    """The form is shown again with the service's own words, and the queue goes on."""
    limit_queue("mail", concurrency=3)
    response = pauser.post(page_of("mail"), {"concurrency": "5", **sent})
    assert list(problems(response)) == ["until"]
    assert text in problems(response)["until"][0]
    assert ">On</span>" in response.text
    queue = Queue.objects.get()
    assert (queue.paused, queue.concurrency) == (False, 3)


def test_who_may_only_look_sees_until_when(db: None) -> None:
    """As text, and only of a pause that goes on."""
    pause_queue("mail", until=timezone.now() + timedelta(days=1))
    client = client_of("view_queue")
    shown = f"{timezone.localtime(Queue.objects.get().paused_until):%Y-%m-%d}"
    page = client.get(page_of("mail"))
    assert shown in page.text.split("Pause until", 1)[1]
    assert "until_0" not in page.text
    Queue.objects.update(paused_until=timezone.now() - timedelta(days=1))
    assert shown not in client.get(page_of("mail")).text


@pytest.mark.parametrize("name", ["two words", "%00", "a" * 300, "<script>"])
def test_a_name_that_no_queue_has(pauser: Client, name: str) -> None:
    """Leads back to the list with a word."""
    assert pauser.get(f"/admin/dilamme/queue/{name}/change/").status_code in (302, 404)


def test_who_may_only_look_changes_nothing() -> None:
    """Neither by a page, nor by a request that no page would send."""
    limit_queue("mail", concurrency=3)
    pause_type("free")
    client = client_of("view_queue", "view_pausedtype")
    assert client.get(reverse(f"{QUEUES}_changelist")).status_code == 200
    assert client.get(page_of("mail")).context["presses"] == []
    act(client, "queue", "pause", "mail")
    act(client, "pausedtype", "resume", "free")
    assert press(client, "queue", "pause", "mail").status_code == 403
    assert press(client, "pausedtype", "resume", "free").status_code == 403
    assert client.post(reverse(f"{QUEUES}_add"), {"name": "q"}).status_code == 403
    for sent in ({"concurrency": "5"}, {"until_0": "2090-01-01", "until_1": "00:00"}):
        assert client.post(page_of("mail"), sent).status_code == 403
    assert client.post(reverse(f"{TYPES}_add"), {"type": "free"}).status_code == 403
    queue = Queue.objects.get()
    assert (queue.paused, queue.concurrency, PausedType.objects.count()) == (False, 3, 1)


def test_who_may_not_look_cannot_pause_unseen(stranger: Client) -> None:
    """The permission to pause alone opens no page, and being staff none at all."""
    limit_queue("mail", concurrency=3)
    assert stranger.get(reverse(f"{QUEUES}_changelist")).status_code == 403
    assert press(stranger, "queue", "pause", "mail").status_code == 403
    assert not Queue.objects.get().paused


@pytest.mark.parametrize("way", [act, press])
def test_a_type_is_paused_and_resumed(pauser: Client, way: Any) -> None:
    """Adding it pauses it."""
    pauser.post(reverse(f"{TYPES}_add"), {"type": "free"})
    assert PausedType.objects.get().type == "free"
    assert "Resumed: free." in way(pauser, "pausedtype", "resume", "free").text
    assert not PausedType.objects.exists()


@pytest.mark.parametrize(
    ("given", "field", "text"),
    [
        ({"type": "two words"}, "type", "use 1 to 100 letters"),
        ({"type": "free", "until_0": "2001-01-01", "until_1": "00:00"}, "until", "use an aware time in the future."),
    ],
)
def test_a_pause_that_is_none_is_refused_at_its_field(
    pauser: Client, given: dict[str, str], field: str, text: str
) -> None:
    """The form is shown again with the service's own words."""
    found = problems(pauser.post(reverse(f"{TYPES}_add"), given))
    assert list(found) == [field]
    assert text in found[field][0]
    assert not PausedType.objects.exists()
