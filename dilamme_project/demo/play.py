"""The jobs of the demo, how each should end, and how each did."""

import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import httpx
from django.utils import timezone

from dilamme_project import tasks
from dilamme_project.demo.processes import ROOT
from jobs import insights, workflow
from jobs.errors import DilammeError
from jobs.models import Job
from jobs.states import FINAL, Status

SAMPLE = ROOT / "dilamme_project" / "samples" / "app.log"
_PATIENCE = 45.0  # seconds until everything must have ended


@dataclass(slots=True)
class Act:
    """One job of the play: what it shows, and how it should end."""

    title: str
    job_id: uuid.UUID
    status: str = Status.COMPLETED
    attempts: int = 1


@dataclass(slots=True)
class Play:
    """All jobs of the demo."""

    api: httpx.Client
    webhook_url: str
    mail_to: str = "operator@example.com"
    acts: list[Act] = field(default_factory=list)

    def put_in(self) -> None:
        """Make the jobs: one over REST, the others from Python."""
        log_job = self._post("log_processing", {"path": str(SAMPLE)})
        self._add("Analyse a log file (over REST)", log_job)
        share = tasks.share_summary.using(depends_on=[log_job], on_failure="run")  # to say so, should there be none
        self._add("Share its summary (waits for it)", share.enqueue(log_job, self.webhook_url, self.mail_to).pk)
        in_three = tasks.greet.using(run_at=timezone.now() + timedelta(seconds=3))
        self._add("Due in three seconds", in_three.enqueue("later").pk)
        for priority, word in ((3, "Low"), (2, "Medium"), (1, "High")):
            self._add(f"Priority {word}", tasks.greet.using(priority=priority).enqueue(word).pk)
        self._add("Fails twice, then succeeds", tasks.flaky.enqueue().pk, attempts=3)
        graph = workflow()
        graph.add("root", tasks.hopeless)
        graph.add("leaf", tasks.greet, "never", after="root")
        made = graph.enqueue().jobs
        self._add("Ends among the dead letters", made["root"].pk, status=Status.FAILED, attempts=2)
        self._add("Waits for it, and goes with it", made["leaf"].pk, status=Status.CANCELLED, attempts=0)

    def watch(self) -> Iterator[dict[uuid.UUID, Job]]:
        """Yield how the jobs stand, several times a second, until all have ended."""
        deadline = time.monotonic() + _PATIENCE
        while True:
            self._take_in_the_shared()
            jobs = {job.pk: job for job in insights.light_jobs().filter(pk__in=[act.job_id for act in self.acts])}
            yield jobs
            if all(job.status in FINAL for job in jobs.values()) and self._is_complete(jobs):
                return
            if time.monotonic() > deadline:
                waiting = ", ".join(act.title for act in self.acts if jobs[act.job_id].status not in FINAL)
                raise DilammeError(f"After {_PATIENCE:g} s these jobs had not ended: {waiting}.")
            time.sleep(0.1)

    def disappointments(self, jobs: dict[uuid.UUID, Job], *, webhooks: list[Any], mails: list[Any]) -> list[str]:
        """Return what did not end as it should; nothing when all is well."""
        wrong = [
            f"{act.title}: {job.status} after {job.attempts_used} attempts instead of {act.status} after {act.attempts}"
            + (f" ({job.last_error})" if job.last_error else "")
            for act in self.acts
            if ((job := jobs[act.job_id]).status, job.attempts_used) != (act.status, act.attempts)
        ]
        if wrong:
            return wrong
        summary = insights.get_job(self.acts[0].job_id).result
        checks: list[tuple[Callable[[], bool], str]] = [
            (lambda: webhooks == [summary], f"The webhook received {webhooks}, not the summary once."),
            (lambda: len(mails) == 1, f"{len(mails)} mails arrived instead of one."),
            (lambda: all(j.started_at is None or j.started_at >= j.scheduled_at for j in jobs.values()),
             "A job started before its time."),
        ]  # fmt: skip
        return [complaint for is_right, complaint in checks if not is_right()]

    def _post(self, kind: str, payload: dict[str, Any]) -> uuid.UUID:
        answer = self.api.post("/api/v1/jobs", json={"type": kind, "payload": payload})
        if answer.status_code != httpx.codes.CREATED:
            raise DilammeError(f"The API answered {answer.status_code}: {answer.text}")
        return uuid.UUID(answer.json()["data"]["id"])

    def _add(self, title: str, job_id: uuid.UUID, **expected: Any) -> None:
        self.acts.append(Act(title, job_id, **expected))

    def _take_in_the_shared(self) -> None:
        """Add the two jobs that `share_summary` has made, once it has."""
        shared = insights.get_job(self.acts[1].job_id).result
        if shared and not self._has_shared:
            self._add("Summary to a webhook", uuid.UUID(shared["webhook"]))
            self._add("Summary by mail", uuid.UUID(shared["mail"]))

    @property
    def _has_shared(self) -> bool:
        return any(act.title == "Summary by mail" for act in self.acts)

    def _is_complete(self, jobs: dict[uuid.UUID, Job]) -> bool:
        """Whether no further job is to come; a share that failed makes none."""
        return self._has_shared or jobs[self.acts[1].job_id].status != Status.COMPLETED
