"""Who may do what in the admin: asked by the pages, and by requests that no page would send."""

import uuid

import pytest
from django.test import Client
from django.urls import reverse

from jobs.models import Job
from jobs.states import Status
from tests.admin.rows import make_job, make_user
from tests.support import history_of, status_of

pytestmark = pytest.mark.django_db

LISTS = ["admin:dilamme_job_changelist", "admin:dilamme_deadletter_changelist"]
BUTTONS = ["retry", "cancel", "retry_workflow", "cancel_workflow"]
ACTIONS = ["retry_selected", "retry_alone_selected", "cancel_selected"]
LABELS = ["Retry", "Cancel", "Retry failed jobs of the workflow", "Cancel whole workflow"]
WORKFLOW = uuid.UUID(int=5)


def _page(job: Job) -> str:
    return reverse("admin:dilamme_job_change", args=[job.pk])


def job_for(button: str) -> Job:
    """Store a job of a workflow to which this button does something."""
    return make_job(Status.FAILED if button.startswith("retry") else Status.PENDING, workflow_id=WORKFLOW)


def _press(client: Client, button: str, job_id: object):
    return client.post(reverse(f"admin:dilamme_job_{button}", args=[job_id]))


def _act(client: Client, action: str, *jobs: Job, page: str = LISTS[0]):
    selected = [str(job.pk) for job in jobs]
    return client.post(reverse(page), {"action": action, "index": "0", "_selected_action": selected})


@pytest.mark.parametrize("button", BUTTONS)
def test_anonymous_posts_go_to_the_login(client, button):
    """Who is not logged in changes nothing and is asked to log in."""
    job = job_for(button)
    answer = _press(client, button, job.pk)
    assert answer.status_code == 302
    assert "/login/" in answer["Location"]
    assert history_of(job.pk) == []


@pytest.mark.parametrize("page", [*LISTS, "admin:dilamme_worker_changelist"])
def test_strangers_see_no_list(stranger, page):
    """Being staff is not enough to see jobs."""
    assert stranger.get(reverse(page)).status_code == 403


def test_strangers_see_no_job(stranger):
    """Being staff is not enough to see one job."""
    assert stranger.get(_page(make_job())).status_code == 403


@pytest.mark.parametrize("button", BUTTONS)
@pytest.mark.parametrize("who", ["viewer", "stranger"])
def test_who_may_only_look_cannot_press(request, who, button):
    """A crafted POST of a button is refused and leaves no trace."""
    job = job_for(button)
    assert _press(request.getfixturevalue(who), button, job.pk).status_code == 403
    assert history_of(job.pk) == []


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("page", LISTS)
def test_who_may_only_look_cannot_act(viewer, action, page):
    """A crafted POST of a list action changes nothing, and the list offers none."""
    jobs = [make_job(Status.FAILED), make_job(Status.PENDING)]
    _act(viewer, action, *jobs, page=page)
    assert [status_of(job.pk) for job in jobs] == [Status.FAILED, Status.PENDING]
    assert "_selected" not in viewer.get(reverse(page)).text


@pytest.mark.parametrize("button", BUTTONS)
def test_each_permission_is_for_one_button(client, button):
    """Who may retry may not cancel, and the other way round; of a workflow neither."""
    permission = button.partition("_")[0]
    client.force_login(make_user("half", "view_job", f"{permission}_job"))
    for other in BUTTONS:
        job = job_for(other)
        answer = _press(client, other, job.pk)
        if other.startswith(permission):
            assert answer.status_code == 302
        else:
            assert answer.status_code == 403
            assert history_of(job.pk) == []


def test_permission_to_retry_without_permission_to_view_is_not_enough(client):
    """Who may not see jobs cannot change them unseen."""
    client.force_login(make_user("blind", "retry_job", "cancel_job"))
    assert _press(client, "retry", make_job(Status.FAILED).pk).status_code == 403


def _labels(client: Client, job: Job) -> list[str]:
    page = client.get(_page(job)).text
    return [label for label in LABELS if f'value="{label}"' in page]


@pytest.mark.parametrize("status", Status.values)
def test_viewers_have_no_buttons(viewer, status):
    """The page of a job shows no button to whom it would refuse."""
    assert _labels(viewer, make_job(status, workflow_id=WORKFLOW)) == []


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        (Status.PENDING, ["Cancel"]),
        (Status.PROCESSING, ["Cancel"]),
        (Status.COMPLETED, []),
        (Status.FAILED, ["Retry"]),
        (Status.CANCELLED, ["Retry"]),
    ],
)
def test_operators_have_the_buttons_that_do_something(operator, status, shown):
    """The page of a job shows what is possible in its status and nothing else."""
    assert _labels(operator, make_job(status)) == shown


@pytest.mark.parametrize(
    ("others", "shown"),
    [
        ([], []),
        ([Status.COMPLETED, Status.CANCELLED], []),
        ([Status.FAILED], ["Retry failed jobs of the workflow"]),
        ([Status.PENDING], ["Cancel whole workflow"]),
        ([Status.PROCESSING, Status.FAILED], ["Retry failed jobs of the workflow", "Cancel whole workflow"]),
    ],
)
def test_operators_have_the_buttons_of_a_workflow(operator, others, shown):
    """What can be done to a workflow follows from all of its jobs, and stands on the page of each."""
    job = make_job(Status.COMPLETED, workflow_id=WORKFLOW)
    for status in others:
        make_job(status, workflow_id=WORKFLOW)
    make_job(Status.FAILED, workflow_id=uuid.UUID(int=6))
    assert _labels(operator, job) == shown


@pytest.mark.parametrize("button", BUTTONS)
def test_a_button_needs_the_token_of_its_page(operator, button):
    """A form on a foreign site cannot press a button."""
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = operator.cookies
    job = job_for(button)
    assert _press(strict, button, job.pk).status_code == 403
    assert history_of(job.pk) == []


@pytest.mark.parametrize("button", BUTTONS)
def test_a_link_cannot_press_a_button(operator, button):
    """GET changes nothing."""
    assert operator.get(reverse(f"admin:dilamme_job_{button}", args=[uuid.uuid4()])).status_code == 405


@pytest.mark.parametrize("model", ["job", "deadletter", "worker"])
def test_nothing_is_added_edited_or_deleted(superuser, model):
    """Even a superuser has no form for rows that only services write."""
    job = make_job(Status.FAILED, type="untouched")
    assert superuser.get(reverse(f"admin:dilamme_{model}_add")).status_code == 403
    assert superuser.post(reverse("admin:dilamme_job_change", args=[job.pk]), {"type": "x"}).status_code == 403
    assert superuser.post(reverse("admin:dilamme_job_delete", args=[job.pk]), {"post": "yes"}).status_code == 403
    assert Job.objects.get(pk=job.pk).type == "untouched"
