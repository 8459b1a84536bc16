"""Series and queues in the admin: forms that ask the services, and buttons for those who may."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from jobs import enqueue, recurring
from jobs.models import Job, PausedType, Queue, Series
from jobs.queries import DjangoSession
from jobs.queues import pause_queue
from jobs.series import make_series
from tests.admin.rows import make_user
from tests.support import handler

pytestmark = pytest.mark.django_db(transaction=True)

SERIES, QUEUES, TYPES = ("admin:dilamme_series", "admin:dilamme_queue", "admin:dilamme_pausedtype")
NEW = {
    "name": "nightly", "type": "free", "payload": '{"n": 1}', "interval": "", "cron": "0 3 * * *",
    "zone": "Europe/Paris", "mode": "grid", "catch_up": "one", "catch_up_limit": "100", "overlap": "skip",
    "jitter": "0",
}  # fmt: skip


def free(**rest: Any) -> None:
    """Take whatever comes."""


@pytest.fixture(autouse=True)
def _type() -> Any:
    """Have a type that takes any payload."""
    with handler(free, name="free"):
        yield


def client_of(*permissions: str) -> Client:
    """Return the client of somebody with these permissions."""
    client = Client()
    client.force_login(make_user("somebody", *permissions))
    return client


def act(client: Client, model: str, action: str, *keys: object) -> Any:
    """Choose an action for some rows."""
    chosen = {"action": action, "_selected_action": [str(key) for key in keys]}
    return client.post(reverse(f"{model}_changelist"), chosen, follow=True)


def test_a_series_is_made_by_the_form_and_shows_its_next_slots(superuser: Client) -> None:
    """What is saved can fire."""
    response = superuser.post(reverse(f"{SERIES}_add"), NEW, follow=True)
    assert response.status_code == 200
    series = Series.objects.get()
    assert (series.cron, series.payload, series.queue) == ("0 3 * * *", {"n": 1}, None)
    page = superuser.get(reverse(f"{SERIES}_change", args=[series.pk])).text
    assert page.count(f"{timezone.now().year}") >= 5
    assert ">On</span>" in superuser.get(reverse(f"{SERIES}_changelist")).text


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"cron": "0 0 31 2 *"}, "never"),
        ({"cron": "0 3 * * *", "interval": "5m"}, "Give either an interval or a cron expression."),
        ({"zone": "Nowhere"}, "Time zone &#x27;Nowhere&#x27; is unknown"),
        ({"type": "nobody_knows_it"}, "No handler is registered for the type"),
        ({"name": "two words"}, "use 1 to 100 letters"),
    ],
)
def test_what_could_never_fire_is_refused_at_its_field(superuser: Client, changes: dict[str, str], text: str) -> None:
    """The form is shown again with the service's own words."""
    page = superuser.post(reverse(f"{SERIES}_add"), {**NEW, **changes}).text
    assert text in page
    assert not Series.objects.exists()


def test_a_series_is_edited_and_removed(superuser: Client) -> None:
    """Only what was changed is written."""
    superuser.post(reverse(f"{SERIES}_add"), NEW)
    series = Series.objects.get()
    address = reverse(f"{SERIES}_change", args=[series.pk])
    superuser.post(address, {**NEW, "cron": "0 4 * * *"})
    changed = Series.objects.get()
    assert (changed.cron, changed.starts_at) == ("0 4 * * *", series.starts_at)
    superuser.post(reverse(f"{SERIES}_delete", args=[series.pk]), {"post": "yes"})
    assert not Series.objects.exists()


def test_series_are_paused_resumed_and_run(superuser: Client) -> None:
    """By the actions of the list, which say what was done."""
    series = make_series("nightly", "free", interval="1h")
    assert "1 series paused." in act(superuser, SERIES, "pause_selected", series.pk).text
    assert Series.objects.get().paused
    assert "1 series resumed." in act(superuser, SERIES, "resume_selected", series.pk).text
    assert "1 series run." in act(superuser, SERIES, "run_selected", series.pk).text
    assert Job.objects.get().type == "free"


def test_what_the_code_declares_can_only_be_paused_and_run(superuser: Client) -> None:
    """Its form is for looking; it is edited in the code."""
    with handler(lambda: None, name="declared", every="1h"):
        recurring.sync_declared(DjangoSession())
        series = Series.objects.get()
        page = superuser.get(reverse(f"{SERIES}_change", args=[series.pk])).text
        assert 'name="interval"' not in page
        assert superuser.post(reverse(f"{SERIES}_change", args=[series.pk]), NEW).status_code == 403
        assert superuser.post(reverse(f"{SERIES}_delete", args=[series.pk]), {"post": "yes"}).status_code == 403
        assert "1 series paused." in act(superuser, SERIES, "pause_selected", series.pk).text


def test_who_may_only_look_changes_nothing() -> None:
    """Each action has a permission of its own."""
    series = make_series("nightly", "free", interval="1h")
    client = client_of("view_series", "view_queue")
    assert client.get(reverse(f"{SERIES}_changelist")).status_code == 200
    act(client, SERIES, "pause_selected", series.pk)
    act(client, SERIES, "run_selected", series.pk)
    assert client.post(reverse(f"{SERIES}_add"), NEW).status_code == 403
    assert client.post(reverse(f"{QUEUES}_add"), {"name": "q"}).status_code == 403
    assert (Series.objects.get().paused, Job.objects.exists(), Queue.objects.exists()) == (False, False, False)


def test_a_queue_is_limited_paused_and_resumed() -> None:
    """By whoever may pause queues."""
    client = client_of("view_queue", "pause_queue")
    client.post(reverse(f"{QUEUES}_add"), {"name": "mail", "concurrency": "3", "rate": "0.5"})
    queue = Queue.objects.get()
    assert (queue.name, queue.concurrency, queue.rate, queue.burst) == ("mail", 3, 0.5, None)
    page = client.post(reverse(f"{QUEUES}_change", args=["mail"]), {"burst": "5"}).text
    assert "burst is given without a rate; give both." in page
    client.post(reverse(f"{QUEUES}_change", args=["mail"]), {"concurrency": ""})
    assert Queue.objects.get().concurrency is None
    assert "1 queues paused." in act(client, QUEUES, "pause_selected", "mail").text
    assert ">Paused</span>" in client.get(reverse(f"{QUEUES}_changelist")).text
    act(client, QUEUES, "resume_selected", "mail")
    assert not Queue.objects.get().paused


def test_a_type_is_paused_and_resumed() -> None:
    """Adding it pauses it."""
    client = client_of("view_pausedtype", "pause_queue")
    client.post(reverse(f"{TYPES}_add"), {"type": "free"})
    assert PausedType.objects.get().type == "free"
    assert "1 types resumed." in act(client, TYPES, "resume_selected", "free").text
    assert not PausedType.objects.exists()


def test_the_page_of_a_job_says_why_it_is_not_running(viewer: Client) -> None:
    """Every reason, and how far its handler was."""
    job = enqueue("free", queue="mail", run_at=timezone.now() + timedelta(hours=3))
    Job.objects.filter(pk=job.pk).update(progress={"done": 3, "total": 8, "message": "<rows>"})
    pause_queue("mail")
    page = viewer.get(reverse("admin:dilamme_job_change", args=[job.pk])).text
    assert "The queue &#x27;mail&#x27; is paused, until somebody resumes it." in page
    assert "It is due in 3 h." in page
    assert "3 of 8 &lt;rows&gt;" in page
