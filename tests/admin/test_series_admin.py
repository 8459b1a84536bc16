"""Series in the admin: a form that asks the service, buttons for those who may, and what the code declares."""

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse

from jobs import recurring
from jobs.models import Job, Occurrence, Series
from jobs.queries import DjangoSession
from jobs.series import make_series, pause_series
from tests.admin.acting import act, client_of, press, problems
from tests.support import handler

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("types")]

LIST, ADD = "admin:dilamme_series_changelist", "admin:dilamme_series_add"
NEW = {
    "name": "nightly", "type": "free", "payload": '{"n": 1}', "interval": "", "cron": "0 3 * * *",
    "zone": "Europe/Paris", "mode": "grid", "catch_up": "one", "catch_up_limit": "100", "overlap": "skip",
    "jitter": "0",
}  # fmt: skip


def page_of(series: Series, page: str = "change") -> str:
    """Return the address of a page of a series."""
    return reverse(f"admin:dilamme_series_{page}", args=[series.pk])


def again(series: Series, **changes: str) -> dict[str, str]:
    """Return what the form of a series sends, with changes."""
    return {**NEW, "starts_at_0": "", "starts_at_1": "", **changes}


# The form


def test_a_series_is_made_by_the_form_and_shows_its_next_slots(superuser: Client) -> None:
    """What is saved can fire; its slots are told by the clock of its zone."""
    response = superuser.post(reverse(ADD), NEW, follow=True)
    assert response.status_code == 200
    series = Series.objects.get()
    assert (series.cron, series.payload, series.queue) == ("0 3 * * *", {"n": 1}, None)
    page = superuser.get(page_of(series)).text
    assert page.count(" 03:00:00 CE") == 5
    assert LogEntry.objects.get().object_id == str(series.pk)


@pytest.mark.parametrize(
    ("changes", "field", "text"),
    [
        ({"cron": "0 0 31 2 *"}, "cron", "never fires"),
        ({"cron": "0 3 * * *", "interval": "5m"}, "interval", "Give either an interval or a cron expression."),
        ({"cron": "", "interval": "5x"}, "interval", "5x"),
        ({"zone": "Nowhere"}, "cron", "Time zone 'Nowhere' is unknown"),
        ({"type": "nobody_knows_it"}, "type", "No handler is registered for the type"),
        ({"type": "strict"}, "payload", "The payload does not fit strict"),
        ({"payload": '{"n": "\\ud800"}'}, "payload", "half of a surrogate pair"),
        ({"payload": '{"n": NaN}'}, "payload", "JSON cannot express"),
        ({"payload": "[1]"}, "payload", 'Give a JSON object, such as {"order_id": 7}.'),
        ({"payload": "nope"}, "payload", "This is no JSON that can be read"),
        ({"payload": "[" * 100_000}, "payload", "This is no JSON that can be read"),
        ({"payload": "9" * 5000}, "payload", "This is no JSON that can be read"),
        ({"name": "two words"}, "name", "use 1 to 100 letters"),
        ({"name": "taken"}, "name", "A series is called 'taken' already; take another name."),
        ({"priority": "4"}, "priority", "use a number from 1 (High) to 3 (Low)."),
        ({"mode": "after"}, "mode", "mode after counts from the end of a run"),
        ({"jitter": "-1"}, "jitter", "use seconds from 0 to 86,400."),
        ({"ends_at_0": "2001-01-01", "ends_at_1": "00:00"}, "ends_at", "it ends before its next slot"),
    ],
)
def test_what_could_never_fire_is_refused_at_its_field(
    superuser: Client, changes: dict[str, str], field: str, text: str
) -> None:
    """The form is shown again with the service's own words, and only with them."""
    make_series("taken", "free", interval="1h")
    response = superuser.post(reverse(ADD), {**NEW, **changes})
    found = problems(response)
    assert list(found) == [field]
    (told,) = found[field]
    assert text in told
    assert Series.objects.count() == 1


def test_a_series_is_edited_by_what_was_changed(superuser: Client) -> None:
    """A field that stays is not written, and so neither anchor nor slots move."""
    superuser.post(reverse(ADD), NEW)
    before = Series.objects.get()
    superuser.post(page_of(before), again(before, queue="mail", payload='{"n": 2}'))
    after = Series.objects.get()
    assert (after.queue, after.payload) == ("mail", {"n": 2})
    assert (after.starts_at, after.last_slot, after.next_at) == (before.starts_at, before.last_slot, before.next_at)
    superuser.post(page_of(before), again(before, queue="", payload='{"n": 2}', cron="0 4 * * *"))
    after = Series.objects.get()
    assert (after.queue, after.cron, after.starts_at) == (None, "0 4 * * *", before.starts_at)
    assert after.last_slot > before.last_slot


def test_an_edit_that_could_never_fire_is_refused(superuser: Client) -> None:
    """The series stays as it was; its own name is not held against it."""
    superuser.post(reverse(ADD), NEW)
    series = Series.objects.get()
    found = problems(superuser.post(page_of(series), again(series, cron="0 0 31 2 *")))
    assert list(found) == ["cron"]
    assert Series.objects.get().cron == "0 3 * * *"


def test_a_series_is_removed(superuser: Client) -> None:
    """With its slots; the page that asks names the series alone. There is no way to remove whole lists."""
    series = make_series("nightly", "free", interval="1h")
    Occurrence.objects.create(series=series, slot=series.last_slot, job_id="00000000-0000-0000-0000-000000000005")
    assert "delete_selected" not in superuser.get(reverse(LIST)).text
    assert str(series.last_slot) not in superuser.get(page_of(series, "delete")).text
    superuser.post(page_of(series, "delete"), {"post": "yes"})
    assert not Series.objects.exists()


# Buttons


@pytest.mark.parametrize("way", [act, press])
def test_series_are_paused_resumed_and_run(superuser: Client, way: Any) -> None:
    """From the list or from the page; the answer says what was done, and Django's log who did it."""
    series = make_series("nightly", "free", interval="1h")
    assert "Paused: nightly." in way(superuser, "series", "pause", series.pk).text
    assert Series.objects.get().paused
    assert "Resumed: nightly." in way(superuser, "series", "resume", series.pk).text
    assert not Series.objects.get().paused
    page = way(superuser, "series", "run", series.pk).text
    job = Job.objects.get()
    assert f'<a href="/admin/dilamme/job/{job.pk}/change/">{job.pk}</a>' in page
    assert (job.type, job.series_id) == ("free", series.pk)
    assert [entry.change_message for entry in LogEntry.objects.order_by("pk")] == ["Pause", "Resume", "Run now"]


def test_a_series_that_cannot_run_says_why(superuser: Client) -> None:
    """The others run; what the service says is shown."""
    with handler(lambda: None, name="gone"):
        gone = make_series("gone", "gone", interval="1h")
    fine = make_series("fine", "free", interval="1h")
    page = act(superuser, "series", "run", gone.pk, fine.pk).text
    assert "Not done for gone: No handler is registered" in page
    assert "Runs now: fine as the job" in page
    assert Job.objects.count() == 1


def test_buttons_fit(superuser: Client) -> None:
    """One that is paused can be resumed, any other paused."""
    series = make_series("nightly", "free", interval="1h")
    labels = [[button.label for button in superuser.get(page_of(series)).context["presses"]]]
    pause_series(series)
    labels.append([button.label for button in superuser.get(page_of(series)).context["presses"]])
    assert labels == [["Pause", "Run now"], ["Resume", "Run now"]]


def test_a_series_that_has_gone(superuser: Client) -> None:
    """Its buttons lead back to the list with a word; a link presses none."""
    assert "is not there any more" in press(superuser, "series", "pause", 12345).text
    assert superuser.get(reverse("admin:dilamme_series_pause", args=[5])).status_code == 405


def test_what_the_code_declares_can_only_be_paused_and_run(superuser: Client) -> None:
    """Its page is for looking; it is edited in the code."""
    with handler(lambda: None, name="declared", every="1h"):
        recurring.sync_declared(DjangoSession())
        series = Series.objects.get()
        page = superuser.get(page_of(series))
        assert 'name="interval"' not in page.text
        assert [button.label for button in page.context["presses"]] == ["Pause", "Run now"]
        assert superuser.post(page_of(series), NEW).status_code == 403
        assert superuser.post(page_of(series, "delete"), {"post": "yes"}).status_code == 403
        assert "Paused: declared." in act(superuser, "series", "pause", series.pk).text


# Who may


def test_who_may_only_look_changes_nothing() -> None:
    """Neither by a page, nor by a request that no page would send."""
    series = make_series("nightly", "free", interval="1h")
    client = client_of("view_series")
    assert client.get(reverse(LIST)).status_code == 200
    assert client.get(page_of(series)).context["presses"] == []
    for button in ("pause", "resume", "run"):
        act(client, "series", button, series.pk)
        assert press(client, "series", button, series.pk).status_code == 403
    assert client.post(reverse(ADD), NEW).status_code == 403
    assert client.post(page_of(series), NEW).status_code == 403
    assert client.post(page_of(series, "delete"), {"post": "yes"}).status_code == 403
    assert (Series.objects.get().paused, Job.objects.exists()) == (False, False)


@pytest.mark.parametrize(
    ("permission", "labels"), [("run_series", ["Run now"]), ("change_series", ["Pause"]), ("delete_series", [])]
)
def test_each_permission_is_for_its_buttons(permission: str, labels: list[str]) -> None:
    """Who may run may not pause, and the other way round."""
    series = make_series("nightly", "free", interval="1h")
    client = client_of("view_series", permission)
    assert [button.label for button in client.get(page_of(series)).context["presses"]] == labels
    allowed = [press(client, "series", button, series.pk).status_code == 200 for button in ("pause", "run")]
    assert allowed == ["Pause" in labels, "Run now" in labels]


def test_strangers_see_no_series(stranger: Client) -> None:
    """Being staff is not enough."""
    series = make_series("nightly", "free", interval="1h")
    for address in (reverse(LIST), page_of(series)):
        assert stranger.get(address).status_code == 403


# The list


def test_the_list_says_how_each_stands(superuser: Client, django_assert_max_num_queries: Any) -> None:
    """Rule, zone, next slot and state; a full page costs as many queries as an empty one."""
    for number in range(30):
        make_series(f"s{number}", "free", interval="1h")
    pause_series(make_series("paused", "free", cron="0 3 * * *", zone="Europe/Paris"))
    Series.objects.filter(name="s1").update(fault="<b>No handler</b>")
    with django_assert_max_num_queries(6):
        page = superuser.get(reverse(LIST)).text
    for text in (">On</span>", ">Paused</span>", ">Faulty</span>", "0 3 * * *", "Europe/Paris"):
        assert text in page
    assert "<b>No handler" not in page


@pytest.mark.parametrize("query", ["q=%00", "q=s", "q=(", "p=x", "o=1", "type__regex=(", "e=1", "payload__x=1"])
def test_no_query_string_is_a_server_error(superuser: Client, query: str) -> None:
    """Nor is any obeyed that the list does not offer."""
    make_series("sss", "free", interval="1h")
    superuser.raise_request_exception = False
    assert superuser.get(f"{reverse(LIST)}?{query}", follow=True).status_code in (200, 400)
