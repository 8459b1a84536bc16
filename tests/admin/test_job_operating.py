"""Retry and Cancel through the pages: what changes, what the history says, and what the operator is told."""

import uuid

import pytest
from django.contrib.messages import get_messages
from django.test import Client
from django.urls import reverse

from jobs import Step, make_workflow
from jobs.admin import operating
from jobs.claims import Ended
from jobs.lifecycle import Appetite, exchange, settle_rest
from jobs.models import Job, JobEvent
from jobs.outcomes import Failed
from jobs.queries import DjangoSession
from jobs.states import EventKind, Status
from jobs.workflows import MadeWorkflow
from tests.admin.rows import make_job
from tests.support import handler, history_of, status_of

JOBS, DEAD_LETTERS = "admin:dilamme_job_changelist", "admin:dilamme_deadletter_changelist"


def _told(answer) -> list[str]:
    return [str(message) for message in get_messages(answer.wsgi_request)]


def _press(client: Client, button: str, job: Job):
    return client.post(reverse(f"admin:dilamme_job_{button}", args=[job.pk]))


def _act(client: Client, action: str, ids, page: str = JOBS, **more: str):
    selected = [str(id_) for id_ in ids]
    data = {"action": action, "index": "0", "_selected_action": selected, "select_across": "0", **more}
    return client.post(reverse(page), data)


def test_retry_of_one_job(operator):
    """The button gives a dead letter new attempts, in the name of the operator, and goes back to the job."""
    job = make_job(Status.FAILED, attempt=3)
    answer = operator.post(reverse("admin:dilamme_job_retry", args=[job.pk]))
    assert answer["Location"] == reverse("admin:dilamme_job_change", args=[job.pk])
    assert _told(answer) == ["Will run again: 1 job."]
    assert status_of(job.pk) == Status.PENDING
    event = JobEvent.objects.get(job=job)
    assert (event.kind, event.actor) == (EventKind.RETRIED, "user:operator")


def test_cancel_of_one_job(operator):
    """The button cancels a pending job, in the name of the operator."""
    job = make_job()
    answer = operator.post(reverse("admin:dilamme_job_cancel", args=[job.pk]))
    assert _told(answer) == ["Cancelled: 1 job."]
    assert status_of(job.pk) == Status.CANCELLED
    assert JobEvent.objects.get(job=job).actor == "user:operator"


def test_a_late_button_says_why(operator):
    """A button pressed on a page that is out of date changes nothing and gives the reason."""
    job = make_job(Status.COMPLETED)
    answer = operator.post(reverse("admin:dilamme_job_cancel", args=[job.pk]))
    assert _told(answer) == ["Not changed: 1 job. It is too late to cancel this job: it has completed."]
    assert history_of(job.pk) == []


def test_a_button_of_a_job_that_is_gone(operator):
    """A job that does not exist is told of, and is no error."""
    answer = operator.post(reverse("admin:dilamme_job_retry", args=[uuid.uuid4()]), follow=True)
    assert answer.status_code == 200
    assert "There is no such job." in answer.text


# Dependants and workflows


def _family() -> tuple[MadeWorkflow, Job]:
    """Make a workflow whose first job has failed, with two others cancelled because of it and one that waits."""
    made = make_workflow({name: Step("free", {}, tuple(after)) for name, after in FAMILY.items()})
    root = made.jobs["root"]
    worker, session = Appetite(uuid.uuid4()), DjangoSession()
    (claim,) = exchange(session, worker, [], 1).claimed.claims
    assert claim.id == root.pk
    exchange(session, worker, [Ended(claim, Failed("boom", final=True), 0.1)], 0)
    settle_rest(session)
    return made, root


FAMILY = {"root": "", "child": ["root"], "grandchild": ["child"], "other": ""}


@pytest.fixture
def free():
    """Have a type whose jobs can be made."""
    with handler(lambda: None, name="free"):
        yield


def _stand(made: MadeWorkflow) -> dict[str, str]:
    return {name: status_of(job.pk) for name, job in made.jobs.items()}


CANCELLED, PENDING, FAILED = (str(status) for status in (Status.CANCELLED, Status.PENDING, Status.FAILED))


@pytest.mark.usefixtures("free")
def test_retry_brings_its_dependants_back(operator):
    """The button says how many others wait again."""
    made, root = _family()
    assert _told(_press(operator, "retry", root)) == ["Will run again: 1 job.", "Wait again with them: 2 jobs."]
    assert set(_stand(made).values()) == {PENDING}


@pytest.mark.usefixtures("free")
@pytest.mark.parametrize("page", [JOBS, DEAD_LETTERS])
def test_retry_without_dependants(operator, page):
    """The action runs the selected jobs again and leaves what was cancelled because of them."""
    made, root = _family()
    assert _told(_act(operator, "retry_alone_selected", [root.pk], page)) == ["Will run again: 1 job."]
    assert _stand(made) == {"root": PENDING, "child": CANCELLED, "grandchild": CANCELLED, "other": PENDING}


@pytest.mark.usefixtures("free")
def test_retry_of_a_selection_counts_each_job_once(operator, monkeypatch):
    """A selected job that an earlier batch brought back with its parent is neither refused nor counted twice."""
    monkeypatch.setattr(operating, "_BATCH", 1)
    made, _ = _family()
    ids = [made.jobs[name].pk for name in ("root", "child", "grandchild")]
    data = {"action": "retry_selected", "index": "0", "select_across": "0", "_selected_action": ids}
    told = _told(operator.post(reverse(JOBS), data))
    assert told == ["Will run again: 1 job.", "Wait again with them: 2 jobs."]
    assert set(_stand(made).values()) == {PENDING}


@pytest.mark.usefixtures("free")
def test_cancel_takes_its_dependants_along(operator):
    """The button says how many others were cancelled."""
    made = make_workflow({"a": Step("free"), "b": Step("free", after=["a"]), "c": Step("free", after=["b"])})
    assert _told(_press(operator, "cancel", made.jobs["a"])) == ["Cancelled: 1 job.", "Cancelled with them: 2 jobs."]
    assert set(_stand(made).values()) == {CANCELLED}


@pytest.mark.usefixtures("free")
def test_a_whole_workflow_is_cancelled_from_any_of_its_jobs(operator):
    """What has ended stays; jobs of others are not touched; the history names the operator."""
    made, root = _family()
    outside = make_job()
    answer = _press(operator, "cancel_workflow", root)
    assert answer["Location"] == reverse("admin:dilamme_job_change", args=[root.pk])
    assert _told(answer) == ["Cancelled: 1 job."]
    assert _stand(made) == {"root": FAILED, "child": CANCELLED, "grandchild": CANCELLED, "other": CANCELLED}
    assert status_of(outside.pk) == PENDING
    assert JobEvent.objects.filter(job=made.jobs["other"]).get().actor == "user:operator"


@pytest.mark.usefixtures("free")
def test_the_failed_jobs_of_a_workflow_are_retried_from_any_of_its_jobs(operator):
    """The ones that failed run again, and what was cancelled because of them waits again."""
    made, _ = _family()
    answer = _press(operator, "retry_workflow", made.jobs["other"])
    assert _told(answer) == ["Will run again: 1 job.", "Wait again with them: 2 jobs."]
    assert set(_stand(made).values()) == {PENDING}


@pytest.mark.parametrize(
    ("button", "told"),
    [
        ("retry_workflow", "No job of this workflow has failed any more."),
        ("cancel_workflow", "All jobs of this workflow have ended already."),
    ],
)
def test_a_late_button_of_a_workflow(operator, button, told):
    """A page that is out of date changes nothing, and the operator is told why."""
    job = make_job(Status.COMPLETED, workflow_id=uuid.uuid4())
    assert _told(_press(operator, button, job)) == [told]
    assert history_of(job.pk) == []


@pytest.mark.parametrize("button", ["retry_workflow", "cancel_workflow"])
def test_a_job_without_a_workflow(operator, button):
    """A request that no page would send is told that there is nothing to act on."""
    job = make_job(Status.FAILED)
    assert _told(_press(operator, button, job)) == ["This job belongs to no workflow."]
    assert status_of(job.pk) == Status.FAILED


# Lists


def test_selected_jobs_are_retried(operator):
    """The action tells how many changed and, for each reason, how many did not."""
    dead = [make_job(Status.FAILED), make_job(Status.CANCELLED)]
    others = [make_job(Status.COMPLETED), make_job(Status.COMPLETED), make_job()]
    answer = _act(operator, "retry_selected", [job.pk for job in (*dead, *others)])
    assert [status_of(job.pk) for job in dead] == [Status.PENDING] * 2
    assert sorted(_told(answer)) == [
        "Not changed: 1 job. It is pending; only failed and cancelled jobs can be retried.",
        "Not changed: 2 jobs. It has completed; enqueue a new job to run it again.",
        "Will run again: 2 jobs.",
    ]


def test_selected_jobs_are_cancelled(operator):
    """Pending jobs are cancelled, running ones asked to stop, and the two are told apart."""
    pending, running = make_job(), make_job(Status.PROCESSING, attempt=1)
    answer = _act(operator, "cancel_selected", [pending.pk, running.pk])
    assert sorted(_told(answer)) == ["Asked to stop: 1 job.", "Cancelled: 1 job."]
    assert status_of(pending.pk) == Status.CANCELLED
    assert history_of(running.pk) == [EventKind.CANCEL_REQUESTED]
    assert set(JobEvent.objects.values_list("actor", flat=True)) == {"user:operator"}


def test_dead_letters_are_retried_from_their_list(operator):
    """The list of dead letters has the action too."""
    job = make_job(Status.FAILED)
    assert _told(_act(operator, "retry_selected", [job.pk], DEAD_LETTERS)) == ["Will run again: 1 job."]
    assert status_of(job.pk) == Status.PENDING


def test_a_dead_letter_that_somebody_has_retried(operator):
    """What has left the list since it was opened is not changed a second time."""
    job = make_job(Status.PENDING)
    answer = _act(operator, "retry_selected", [job.pk], DEAD_LETTERS)
    assert _told(answer) == ["What you selected is not in this list any more."]


def test_all_pages_at_once(operator):
    """Selecting all reaches the jobs on other pages, and only those that the filter shows."""
    jobs = [make_job(Status.FAILED, queue="mail") for _ in range(60)]
    other = make_job(Status.FAILED, queue="slow")
    page = reverse(JOBS) + "?queue=mail"
    data = {"action": "retry_selected", "index": "0", "select_across": "1", "_selected_action": [str(jobs[0].pk)]}
    assert _told(operator.post(page, data)) == ["Will run again: 60 jobs."]
    assert status_of(other.pk) == Status.FAILED


@pytest.mark.parametrize("selected", ["x", "1", "", "\x00", "../../", "0" * 5000])
def test_a_selection_that_is_none(operator, selected):
    """A crafted selection is a bad request, and no server error."""
    assert _act(operator, "retry_selected", [selected]).status_code == 400


@pytest.mark.parametrize(
    "crafted",
    [
        {"action": "delete_selected"},
        {"action": "__class__"},
        {"index": "x"},
        {"index": "99"},
        {"select_across": "x"},
        {"_save": "1"},
    ],
)
def test_crafted_actions_change_nothing(operator, crafted):
    """Actions that are not offered are answered, and not run."""
    job = make_job(Status.FAILED)
    answer = _act(operator, ids=[job.pk], **{"action": "nonsense", **crafted})
    assert answer.status_code < 500
    assert status_of(job.pk) == Status.FAILED
