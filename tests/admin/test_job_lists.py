"""The lists: what they show, how they filter and search, and that no address bar can break or burden them."""

import uuid
from datetime import timedelta
from urllib.parse import quote

import pytest
from django.urls import reverse
from django.utils import timezone

from jobs.admin import base
from jobs.models import Job
from jobs.states import Status
from tests.admin.rows import make_job

JOBS, DEAD_LETTERS = "admin:dilamme_job_changelist", "admin:dilamme_deadletter_changelist"

HOSTILE = [
    "p=0", "p=-1", "p=99999999999999999999", "p=x", "p=1e5", "p=" + "9" * 5000, "p=2",
    "all=1", "all=", "o=1", "o=-1.2", "o=99", "o=x.y", "o=-", "e=1", "e=x",
    "status=", "status=%00", "status=nonsense", "status=pending&status=failed", "status=' or 1=1--",
    "type=%00", "type=" + "x" * 5000, "type=<script>", "queue=%00", "queue=%ff%fe", "priority=nan", "priority=%00",
    "workflow=", "workflow=%00", "workflow=x", "workflow=" + "f" * 32, "workflow=<script>", "workflow__gt=1",
    "workflow_id=x", "q=%00", "q=" + "x" * 5000, "q=%25_%5C", "q=(", "q={not-a-uuid}", "q=%ed%a0%80",
    "type__regex=(", "type__regex=(a%2B)%2B%24", "payload__x=1", "result__isnull=1", "last_error__contains=a",
    "id__exact=zzz", "id=1", "parent_edges__parent__type=x", "events__traceback__contains=x", "password=x", "x=1",
    "_popup=1", "_to_field=password", "_to_field=id", "_facets=True", "_changelist_filters=%00", "=", "%00=1",
]  # fmt: skip


def _list(client, query: str = "", page: str = JOBS):
    return client.get(f"{reverse(page)}?{query}", follow=True)


def _shown(answer) -> list[Job]:
    return list(answer.context["cl"].result_list)


@pytest.mark.parametrize("page", [JOBS, DEAD_LETTERS, "admin:dilamme_worker_changelist"])
def test_no_query_string_is_a_server_error(viewer, page):
    """Whatever stands in the address bar is answered with a page or a refusal."""
    viewer.raise_request_exception = False
    statuses = {query: _list(viewer, query, page).status_code for query in HOSTILE}
    assert {query: status for query, status in statuses.items() if status >= 500} == {}


@pytest.mark.parametrize("page", [JOBS, DEAD_LETTERS])
def test_the_number_of_queries_does_not_grow(viewer, page, django_assert_max_num_queries):
    """A full page of jobs costs as many queries as an empty one: session, user, permissions, count, rows."""
    for _ in range(60):
        make_job(Status.FAILED, last_error="ValueError: no")
    with django_assert_max_num_queries(7):
        assert len(_shown(_list(viewer, page=page))) == 50


def test_payloads_stay_in_the_database(viewer):
    """The list loads neither payload nor result."""
    make_job(payload={"large": "x" * 1000})
    assert Job.objects.count() == 1
    assert {"payload", "result"} <= _shown(_list(viewer))[0].get_deferred_fields()


def test_counting_is_bounded(viewer, monkeypatch):
    """A list counts no further than its bound, and says that there may be more."""
    monkeypatch.setattr(base, "COUNTED", 60)
    for _ in range(70):
        make_job()
    answer = _list(viewer)
    assert answer.context["cl"].result_count == 60
    assert "60+" in answer.text


def test_the_newest_job_comes_first(viewer):
    """Jobs are listed by age, the newest on top."""
    jobs = [make_job() for _ in range(3)]
    assert _shown(_list(viewer)) == jobs[::-1]


def test_a_row_says_what_matters(viewer):
    """A row has the badge, the names, the attempts used, the times and the first line of the error."""
    now = timezone.now()
    job = make_job(
        Status.FAILED, queue="mail", priority=1.0, attempt=4, attempts_refunded=1, max_attempts=3,
        started_at=now - timedelta(seconds=3), finished_at=now, last_error="SMTPError: 550\nno such user",
    )  # fmt: skip
    page = _list(viewer).text
    badge = f'<span class="dilamme-badge dilamme-status-failed" data-dilamme-job="{job.pk}">Failed</span>'
    assert badge in page
    for text in ("send_email", "mail", "High", "3 of 3", "3.0 s", ">SMTPError: 550<", "no such user"):
        assert text in page


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("status=failed", ["a"]),
        ("status=pending", ["b", "c"]),
        ("status=nonsense", []),
        ("type=b", ["b"]),
        ("type=" + quote("b or c"), []),
        ("queue=slow", ["c"]),
        ("priority=high", ["a"]),
        ("priority=low", ["c"]),
        ("priority=medium", ["b"]),
        ("priority=all", []),
        ("status=pending&queue=slow", ["c"]),
    ],
)
def test_filters(viewer, query, found):
    """Each filter keeps what equals its value; a value that no job can have keeps nothing."""
    make_job(Status.FAILED, type="a", priority=1)
    make_job(type="b", priority=2.4)
    make_job(type="c", priority=2.5, queue="slow")
    assert sorted(job.type for job in _shown(_list(viewer, query))) == found


def test_the_jobs_of_a_workflow(viewer):
    """The list of a workflow has its jobs and no others; the filter is shown, and can be taken back."""
    workflow = uuid.uuid4()
    jobs = [make_job(workflow_id=workflow) for _ in range(2)]
    make_job(workflow_id=uuid.uuid4())
    query = f"workflow={workflow}"
    assert _shown(_list(viewer, query)) == jobs[::-1]
    assert [spec.title for spec in _specs(viewer, query)] == ["status", "type", "queue", "priority", "workflow"]
    assert "workflow" not in [spec.title for spec in _specs(viewer, "")]
    assert _shown(_list(viewer, "workflow=nonsense")) == []


def test_filters_offer_what_is_known_and_what_is_asked_for(viewer):
    """Choices are the registered names and the one in the address, so that it can be seen and taken back."""
    make_job(type="never_registered", queue="elsewhere")
    filters = {spec.title: [value for value, _ in spec.lookup_choices] for spec in _specs(viewer, "type=by_hand")}
    assert "by_hand" in filters["type"]
    assert "send_email" in filters["type"]
    assert "never_registered" not in filters["type"]
    assert filters["queue"] == ["default"]
    assert filters["status"] == Status.values


def _specs(viewer, query: str):
    return _list(viewer, query).context["cl"].filter_specs


def test_search_finds_an_id(viewer):
    """A whole id finds its job, in any way of writing it."""
    job, _ = make_job(), make_job()
    assert _shown(_list(viewer, f"q={job.pk}")) == [job]
    assert _shown(_list(viewer, f"q=%20{str(job.pk).upper()}%20")) == [job]


def test_search_finds_how_a_type_begins(viewer):
    """Anything else is the beginning of a type, taken literally."""
    job, _ = make_job(type="mail_monthly"), make_job(type="mailbox")
    assert _shown(_list(viewer, "q=mail_")) == [job]
    assert _shown(_list(viewer, "q=%25")) == []


def test_dead_letters_are_the_failed_jobs(viewer):
    """The list of dead letters shows failed jobs, and leads to the pages of the jobs."""
    dead, _ = make_job(Status.FAILED), make_job(Status.CANCELLED)
    assert [job.pk for job in _shown(_list(viewer, page=DEAD_LETTERS))] == [dead.pk]
    answer = viewer.get(reverse("admin:dilamme_deadletter_change", args=[dead.pk]))
    assert answer["Location"] == reverse("admin:dilamme_job_change", args=[dead.pk])


@pytest.mark.parametrize("job_id", ["x", "1", "00000000-0000-0000-0000-000000000000", "%00", "_5B"])
def test_a_job_that_does_not_exist(viewer, job_id):
    """An id that is none, or nobody's, leads back with a word, and is no server error."""
    assert viewer.get(reverse("admin:dilamme_job_changelist") + f"{job_id}/change/").status_code in (302, 404)
