"""What the tests of graphs share: a worker's turn without a worker, and how a graph stands."""

import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from django.db import connection

from jobs import Step, make_workflow
from jobs.claims import Claim, Ended
from jobs.lifecycle import Appetite, exchange, settle_rest
from jobs.models import Job
from jobs.outcomes import Failed, Outcome, Succeeded
from jobs.queries import WorkerSession
from jobs.workflows import MadeWorkflow

DEAD = Failed("boom", final=True)


def make(after: Mapping[str, Iterable[str]], **options: Any) -> MadeWorkflow:
    """Make a graph of jobs that do nothing, from what each is after."""
    return make_workflow({name: Step("free", {}, tuple(parents), **options) for name, parents in after.items()})


class Turns:
    """Claims and ends jobs as a worker would, one statement after the other."""

    def __init__(self, session: WorkerSession) -> None:
        self.session = session
        self.appetite = Appetite(uuid.uuid4())
        self.held: dict[uuid.UUID, Claim] = {}

    def claim(self, room: int = 1000) -> list[Claim]:
        """Take what is due."""
        self.appetite.frontier.doubt()
        self.appetite.frontier._not_before = 0.0
        claims = exchange(self.session, self.appetite, [], room).claimed.claims
        self.held |= {claim.id: claim for claim in claims}
        return claims

    def end(self, job: Job | uuid.UUID, outcome: Outcome | None = None) -> None:
        """End a run of a job that was claimed; it succeeds unless said otherwise. Dependants are told."""
        claim = self.held.pop(job.pk if isinstance(job, Job) else job)
        exchange(self.session, self.appetite, [Ended(claim, outcome or Succeeded(), 0.1)], 0)
        settle_rest(self.session)

    def run(self, job: Job, outcome: Outcome | None = None) -> None:
        """Claim what is due, this job among it, and end it."""
        if job.pk not in self.held:
            self.claim()
        self.end(job, outcome)


def statuses(made: MadeWorkflow) -> dict[str, str]:
    """Return how each job of a graph stands, `blocked` if it is pending and waits for others."""
    rows = Job.objects.filter(workflow_id=made.id).values_list("step", "status", "unmet")
    return {step: "blocked" if status == "pending" and unmet else status for step, status, unmet in rows}


def reasons(made: MadeWorkflow) -> dict[str, str]:
    """Return the name of the job because of which each was cancelled, for those that were."""
    names = {job.pk: name for name, job in made.jobs.items()}
    rows = Job.objects.filter(workflow_id=made.id, cancelled_because__isnull=False)
    return {step: names[root] for step, root in rows.values_list("step", "cancelled_because")}


_WRONG = {
    "a count that is not that of the unsettled edges": """
        select j.id from dilamme_job j where j.status = 'pending' and j.unmet <> (
          select count(*) from dilamme_jobdependency d where d.child_id = j.id and not d.settled)""",
    "a job that waits for nobody who could still end": """
        select j.id from dilamme_job j where j.status = 'pending' and j.unmet > 0 and not exists (
          select from dilamme_jobdependency d join dilamme_job p on p.id = d.parent_id
          where d.child_id = j.id and not d.settled and p.status in ('pending', 'processing'))""",
    "a job that waits beside a dead parent": """
        select j.id from dilamme_job j join dilamme_jobdependency d on d.child_id = j.id and not d.settled
        join dilamme_job p on p.id = d.parent_id
        where j.status = 'pending' and d.on_failure = 'cancel' and p.status in ('failed', 'cancelled')""",
    "a job that ran although a parent it needs has not completed": """
        select j.id from dilamme_job j join dilamme_jobdependency d on d.child_id = j.id and not d.settled
        where j.status in ('processing', 'completed')""",
    "a job that is cancelled because of one that is not dead": """
        select j.id from dilamme_job j join dilamme_job r on r.id = j.cancelled_because
        where j.status = 'cancelled' and r.status not in ('failed', 'cancelled')""",
    "a job that is not cancelled and says because of whom it is": """
        select id from dilamme_job where status <> 'cancelled' and cancelled_because is not null""",
    "a dependant that nobody has told": "select job_id from dilamme_unsettled",
}


def what_is_wrong() -> dict[str, int]:
    """Return which invariants of graphs are broken now, and how often; nothing may be on its way."""
    found = {}
    with connection.cursor() as cursor:
        for name, query in _WRONG.items():
            cursor.execute(query)
            if rows := cursor.fetchall():
                found[name] = len(rows)
    return found
