"""How PostgreSQL runs the statements of `jobs/sql`: by index, whatever its statistics say."""

import json
import uuid

import pytest
from django.db import connection, transaction
from django.utils import timezone

from jobs.models import Job
from jobs.queries import load

pytestmark = pytest.mark.django_db(transaction=True)

IDS = [uuid.uuid4() for _ in range(50)]
N = len(IDS)
WORKER = uuid.uuid4()

AGING = {"step": 30.0, "decrement": 1.0, "thresholds": [0.0, 0.0, 0.0]}
LEVELS = {
    "queues": ["q0", "q1", "q2"],
    "priorities": [1.0, 2.0, 3.0],
    "sinces": [0.0] * 3,
    "firsts": [uuid.UUID(int=0)] * 3,
}
ENDED = {"worker": WORKER, "ids": IDS, "attempts": [1] * N, "durations": [0.1] * N}
PARAMETERS: dict[str, dict[str, object]] = {
    "add_edges": {"children": IDS, "parents": IDS, "on_failure": ["run"] * N, "settled": [False] * N},
    "asked_to_stop": {"worker": WORKER},
    "cancel": {"ids": IDS, "actor": "a"},
    "claim": {"worker": WORKER, "room": 100, **LEVELS, **AGING},
    "complete": {**ENDED, "attempt": None, "results": [None] * N},
    "end": {
        **ENDED,
        "horizon": 10.0,
        "statuses": ["pending"] * N,
        "kinds": ["failed"] * N,
        "delays": [1.0] * N,
        "keep_run_at": [False] * N,
        "refunds": [0] * N,
        "errors": ["e"] * N,
        "notes": ["e"] * N,
        "tracebacks": [""] * N,
    },
    "forward": {
        "ids": IDS,
        "types": ["t"] * N,
        "queues": ["q"] * N,
        "priorities": [2.0] * N,
        "payloads": ["{}"] * N,
        "run_ats": [None] * N,
        "accepted_ats": [timezone.now()] * N,
        "max_attempts": [3] * N,
        "horizon": 10.0,
    },
    "held": {"worker": WORKER},
    "saturate": {"worker": WORKER, "queues": ["q"], "priorities": [2.0]},
    "lock_lost": {"lease": 30.0, "room": 200},
    "lock_parents": {"ids": IDS},
    "frontier": {"queues": None},
    "retry": {"ids": IDS, "unmet": [0] * N, "kinds": ["retried"] * N, "actor": "a", "horizon": 10.0},
    "replace": {"ids": IDS, "payloads": ["{}"] * N, "run_ats": [None] * N, "horizon": 10.0},
    "blame": {"ids": IDS, "roots": IDS},
    "cascade": {"ids": IDS, "room": 1000},
    "downstream": {"roots": IDS},
    "due_series": {"types": ["t"], "room": 100},
    "ahead": {"id": WORKER, "queues": ["q0"], "types": ["t"], "limit": 10, **AGING},
    "report": {
        "worker": WORKER,
        "ids": IDS,
        "attempts": [1] * N,
        "progress": ["{}"] * N,
        "of": IDS,
        "in": [1] * N,
        "ages": [0.0] * N,
        "lines": ["l"] * N,
    },
    "prune": {"ids": IDS, "retention": 60.0, "together": True},
    "prune_candidates": {"retention": 60.0, "behind": WORKER, "before": WORKER, "room": 100},
    "connected": {"ids": IDS, "retention": 60.0, "limit": 1000},
    "queue_counts": {"queues": None, "after": "q", "room": 50},
    "edges_to": {"ids": IDS},
    "claim_limited": {"worker": WORKER, "room": 10, "queue": "q0", "paused": [], **LEVELS, **AGING},
    "edit": {
        "id": WORKER,
        "payload": None,
        "queue": None,
        "priority": 1.0,
        "run_at": None,
        "actor": "a",
        "note": "",
        "horizon": 10.0,
    },
    "expire": {"room": 100},
    "in_workflow": {"workflow": WORKER, "statuses": ["pending"], "behind": WORKER, "room": 100},
    "key_holders": {"keys": ["k"] * N},
    "lock_jobs": {"ids": IDS},
    "settle": {"ids": IDS, "horizon": 10.0},
    "upcoming": {**LEVELS, "horizon": 10.0, "room": 500},
}
# They touch no job that exists already.
WITHOUT_JOBS = {
    "controls",
    "hold_queue",
    "clock",
    "declare_series",
    "fire",
    "next_series",
    "retire_series",
    "tell_workers",
    "_levels",
    "_notify",
    "_terms",
    "_wake",
    "beat",
    "claim_idempotency",
    "enqueue",
    "enqueue_one",
    "enqueue_unique",
    "forget_workers",
    "keep_answer",
    "kept_answer",
    "ping",
    "prune_idempotency",
    "publish",
    "take_unsettled",
    "try_sweep",
}


@pytest.fixture(params=["statistics of an idle queue", "no statistics"])
def history(request):
    """A table with 20,000 finished, 2,000 waiting and 300 running jobs."""
    with connection.cursor() as cursor:
        if request.param == "statistics of an idle queue":
            _fill(cursor, 20_000, "completed")
            cursor.execute("analyze dilamme_job")
        else:
            _fill(cursor, 20_000, "completed")
        _fill(cursor, 2_000, "pending")
        _fill(cursor, 300, "processing")


def _fill(cursor, count: int, status: str) -> None:
    cursor.execute(
        "insert into dilamme_job (id, type, queue, status, priority, payload, attempt, attempts_refunded, max_attempts,"
        " unmet, last_error, finished_at, worker_id, started_at)"
        " select gen_random_uuid(), 't', 'q' || n %% 3, %s, 1 + n %% 3, '{}', 1, 0, 3, 0, '',"
        " case when %s = 'completed' then now() end, case when %s = 'processing' then gen_random_uuid() end, now()"
        " from generate_series(1, %s) n",
        [status, status, status, count],
    )


def plan_of(statement: str) -> list[dict]:
    """Return the nodes of a statement's plan."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"explain (format json) {load(statement)}", PARAMETERS[statement])
        (answer,) = cursor.fetchone()
    found, todo = [], [(answer if isinstance(answer, list) else json.loads(answer))[0]["Plan"]]
    while todo:
        node = todo.pop()
        found.append(node)
        todo += node.get("Plans", [])
    return found


@pytest.mark.parametrize("statement", sorted(PARAMETERS))
@pytest.mark.usefixtures("history")
def test_no_statement_reads_the_whole_table(statement):
    """Neither jobs, edges nor history are scanned from end to end."""
    scans = [n for n in plan_of(statement) if n["Node Type"] == "Seq Scan" and n["Relation Name"] == "dilamme_job"]
    assert scans == []


@pytest.mark.parametrize("statement", ["complete", "end"])
@pytest.mark.usefixtures("history")
def test_a_run_is_ended_by_primary_key_and_nothing_else(statement):
    """The index of running jobs, full of dead entries in a busy queue, is not walked."""
    used = {n["Index Name"] for n in plan_of(statement) if "Index Name" in n}
    assert used == {"dilamme_job_pkey"}


@pytest.mark.usefixtures("history")
def test_the_claim_reads_one_range_of_one_index_for_each_priority():
    """Jobs are found in `dilamme_job_ready` and updated by primary key."""
    used = {n["Index Name"] for n in plan_of("claim") if "Index Name" in n}
    assert used == {"dilamme_job_ready", "dilamme_job_pkey"}
    assert Job.objects.filter(status="processing").count() == 300


def test_every_statement_has_its_plan_looked_at():
    """A new statement must be added here."""
    from pathlib import Path

    import jobs

    names = {path.stem for path in (Path(jobs.__file__).parent / "sql").glob("*.sql")}
    assert names == set(PARAMETERS) | WITHOUT_JOBS
