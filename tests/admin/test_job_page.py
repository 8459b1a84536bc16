"""The page of one job: what it shows, and that it opens whatever a job has been through."""

import uuid
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.urls import reverse
from django.utils import timezone

from jobs.admin import detail
from jobs.models import JobDependency, JobEvent
from jobs.queues import pause_queue
from jobs.series import make_series, run_now
from jobs.states import EventKind, Status
from tests.admin.rows import make_job


def _page(client, job):
    return client.get(reverse("admin:dilamme_job_change", args=[job.pk]))


def test_payload_and_result_are_indented_json(viewer):
    """Payload and result are shown as a person would write them."""
    job = make_job(Status.COMPLETED, payload={"to": ["ada"]}, result={"sent": True})
    page = _page(viewer, job).text
    assert "&quot;to&quot;: [\n        &quot;ada&quot;\n    ]" in page
    assert "&quot;sent&quot;: true" in page


def test_metadata_is_shown_beside_the_payload(viewer):
    """Indented like it, as text; a job without has a dash there."""
    page = _page(viewer, make_job(metadata={"tenant": "<b>acme</b>"})).text
    assert "{\n    &quot;tenant&quot;: &quot;&lt;b&gt;acme&lt;/b&gt;&quot;\n}" in page
    assert "<b>acme" not in page
    without = _page(viewer, make_job()).text
    assert without.count('<pre class="dilamme-text">') == 1  # the payload


def test_a_large_payload_is_cut(viewer):
    """A payload of megabytes does not make a page of megabytes."""
    job = make_job(payload={"large": "x" * 2_000_000})
    assert len(_page(viewer, job).content) < 2 * detail.TEXT_LIMIT


@pytest.mark.parametrize("column", ["payload", "metadata"])
@pytest.mark.parametrize("payload", ["[" * 3000 + "]" * 3000, '{"n": ' + "9" * 6000 + "}", '{"n": 1e400}'])
def test_a_payload_that_python_cannot_read(viewer, payload, column):
    """JSON that only PostgreSQL can parse does not keep an operator from the page."""
    job = make_job()
    with connection.cursor() as cursor:
        cursor.execute(f"update dilamme_job set {column} = %s::jsonb where id = %s", [payload, job.pk])
    assert _page(viewer, job).status_code == 200


def test_the_history_is_told(viewer):
    """Every event is there with its kind, attempt, duration, worker, actor, error and traceback."""
    job, worker = make_job(Status.FAILED, attempt=1), uuid.uuid4()
    JobEvent.objects.create(
        job=job, kind=EventKind.DEAD, attempt=1, worker_id=worker, duration=0.25, error="ValueError: no",
        traceback="Traceback (most recent call last)",
    )  # fmt: skip
    JobEvent.objects.create(job=job, kind=EventKind.RETRIED, attempt=1, actor="user:ada")
    page = _page(viewer, job).text
    for text in (EventKind.DEAD.label, "250 ms", str(worker), "ValueError: no", "Traceback (most", "user:ada"):
        assert text in page


def test_neighbours_are_links(viewer):
    """Parents and children are shown with their status, and can be followed."""
    parent, job, child = make_job(Status.COMPLETED), make_job(), make_job(unmet=1)
    JobDependency.objects.create(child=job, parent=parent, settled=True)
    JobDependency.objects.create(child=child, parent=job)
    page = _page(viewer, job).text
    for neighbour in (parent, child):
        assert reverse("admin:dilamme_job_change", args=[neighbour.pk]) in page
        assert f'data-dilamme-job="{neighbour.pk}"' in page


def test_what_a_job_is_part_of_is_shown(viewer):
    """Its workflow and the job that cancelled it are links; step, unique key, expiry and timeout are told."""
    workflow, root = uuid.uuid4(), make_job(Status.FAILED)
    job = make_job(
        Status.CANCELLED, workflow_id=workflow, step="report", cancelled_because=root.pk, unique_key="order 7",
        expires_at=datetime(2031, 2, 3, 4, 5, 6, tzinfo=UTC), timeout=90.0,
    )  # fmt: skip
    page = _page(viewer, job).text
    for text in ("report", "order 7", "2031-02-03 04:05:06 UTC", "1 min 30 s"):
        assert text in page
    lists = reverse("admin:dilamme_job_changelist")
    assert f'<a href="{lists}?workflow={workflow}">{workflow}</a>' in page
    assert f'<a href="{reverse("admin:dilamme_job_change", args=[root.pk])}">{root.pk}</a>' in page


def test_a_job_on_its_own_shows_no_workflow(viewer):
    """What it does not have is a dash, and there is no table of a workflow."""
    page = _page(viewer, make_job()).text
    assert "None" not in page
    assert "?workflow=" not in page


def test_a_workflow_is_shown_by_status(viewer):
    """The page counts the jobs of the workflow, and each count leads to a list of just those."""
    workflow = uuid.uuid4()
    job, *_ = [make_job(status, workflow_id=workflow) for status in ("failed", "failed", "pending")]
    make_job(Status.FAILED)
    page = _page(viewer, job).text
    assert "Workflow: 3 jobs" in page
    for status, count in (("failed", 2), ("pending", 1)):
        address = f"{reverse('admin:dilamme_job_changelist')}?workflow={workflow}&amp;status={status}"
        assert f'<a href="{address}">{count}</a>' in page
        listed = viewer.get(address.replace("&amp;", "&")).context["cl"].result_list
        assert len(listed) == count
    assert "status=completed" not in page


def test_what_is_many_is_bounded(viewer, monkeypatch, django_assert_max_num_queries):
    """Of many events and children some are shown, with their number, in a fixed number of queries."""
    monkeypatch.setattr(detail, "SHOWN", 5)
    job = make_job(workflow_id=uuid.uuid4())
    for _ in range(7):
        JobDependency.objects.create(child=make_job(unmet=1), parent=job)
        JobEvent.objects.create(job=job, kind=EventKind.FAILED, attempt=1)
    with django_assert_max_num_queries(18):
        page = _page(viewer, job).text
    assert "Children: 7 jobs" in page
    assert page.count(str(EventKind.FAILED.label)) == 5
    assert page.count('data-dilamme-job="') == 1 + 5


def test_times_at_the_ends_of_the_calendar(viewer, settings):
    """A job that is due at the end of time can be looked at in any time zone."""
    settings.TIME_ZONE = "Pacific/Kiritimati"
    job = make_job(run_at=datetime.max.replace(tzinfo=UTC))
    assert _page(viewer, job).status_code == 200
    assert viewer.get(reverse("admin:dilamme_job_changelist")).status_code == 200


def test_a_page_says_why_a_job_is_not_running(viewer):
    """Every reason, with ways to the jobs that it is about; of a job that has ended nothing."""
    parent = make_job()
    job = make_job(queue="mail", unmet=1, run_at=timezone.now() + timedelta(hours=3), concurrency_key="customer 7")
    JobDependency.objects.create(child=job, parent=parent)
    pause_queue("mail")
    page = _page(viewer, job).text
    for text in (
        "Why is it not running?", "The queue &#x27;mail&#x27; is paused, until somebody resumes it.",
        "It is due in 3 h.", f">{parent.pk}</a>", "customer 7",
    ):  # fmt: skip
        assert text in page
    assert "Why is it" not in _page(viewer, make_job(Status.COMPLETED)).text
    running = _page(viewer, make_job(Status.PROCESSING)).text
    assert "Where it stands" in running
    assert "has not been heard of" in running


@pytest.mark.parametrize(
    ("progress", "text"),
    [
        ({"done": 3, "total": 8, "message": "rows"}, 'max="1" value="0.3750"></progress> 3 of 8 rows<'),
        ({"done": 9, "total": 8, "message": ""}, 'value="1.0000"></progress> 9 of 8<'),
        ({"done": 0.5, "total": None, "message": "<b>"}, ">0.5 &lt;b&gt;<"),
        ({"done": 3, "total": 0, "message": "x"}, ">3 of 0 x<"),
        ({"message": "x"}, ">x<"),
        ({"done": "x", "total": []}, ">–<"),  # noqa: RUF001  the sign for "nothing here"
    ],
)
def test_a_page_says_how_far_a_handler_is(viewer, settings, progress, text):
    """A bar if there is a total, the numbers, and its words, in any language."""
    settings.LANGUAGE_CODE, settings.USE_THOUSAND_SEPARATOR = "de", True
    assert text in _page(viewer, make_job(progress=progress)).text


def test_what_a_handler_said_is_no_error(viewer):
    """Its lines stand in the history, between what happened, and look different."""
    job = make_job(attempt=1)
    JobEvent.objects.create(job=job, kind=EventKind.LOGGED, attempt=1, error="read <3> rows")
    JobEvent.objects.create(job=job, kind=EventKind.FAILED, attempt=1, error="ValueError: no")
    page = _page(viewer, job).text
    assert '<div class="dilamme-said">read &lt;3&gt; rows</div>' in page
    assert '<div class="dilamme-message">ValueError: no</div>' in page


@pytest.mark.usefixtures("types")
def test_a_page_leads_to_the_series_of_its_job(viewer):
    """As long as there is one."""
    series = make_series("nightly", "free", interval="1h")
    job = run_now(series)
    link = f'<a href="{reverse("admin:dilamme_series_change", args=[series.pk])}">nightly</a>'
    assert link in _page(viewer, job).text
    series.delete()
    assert _page(viewer, job).status_code == 200
