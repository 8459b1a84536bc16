"""Why a job is not running, asked over REST."""

import uuid
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from jobs import enqueue
from jobs.models import Job
from tests.api.answers import JOBS, read

pytestmark = pytest.mark.django_db(transaction=True)


def test_why_a_job_is_not_running_is_told(api: Client) -> None:
    """Every reason, for people and for programs."""
    job = enqueue("free", queue="q")
    read(api.post("/api/v1/queues/q/pause"), 200)
    told = read(api.get(f"{JOBS}/{job.pk}/explain"), 200)["data"]
    assert (told["job_id"], told["status"]) == (str(job.pk), "pending")
    assert [reason["why"] for reason in told["reasons"]] == ["queue_paused", "no_worker"]
    assert told["reasons"][0]["text"] == "The queue 'q' is paused, until somebody resumes it."
    read(api.get(f"{JOBS}/{uuid.uuid4()}/explain"), 404)


def test_a_reason_names_its_jobs_and_its_end(api: Client) -> None:
    """So that a program can follow them, and knows when to ask again."""
    parent = enqueue("free")
    due = timezone.now() + timedelta(hours=3)
    child = enqueue("free", depends_on=(parent.pk,), run_at=due)
    parents, time, _ = read(api.get(f"{JOBS}/{child.pk}/explain"), 200)["data"]["reasons"]
    assert (parents["why"], parents["jobs"], parents["until"]) == ("parents", [str(parent.pk)], None)
    assert (time["why"], time["jobs"], time["until"][:19]) == ("not_due", [], f"{due:%Y-%m-%dT%H:%M:%S}")


def test_how_a_job_has_ended_is_told_as_well(api: Client) -> None:
    """With the status it has."""
    job = enqueue("free")
    Job.objects.update(status="completed", finished_at=timezone.now())
    told = read(api.get(f"{JOBS}/{job.pk}/explain"), 200)["data"]
    assert (told["status"], [reason["why"] for reason in told["reasons"]]) == ("completed", ["ended"])
