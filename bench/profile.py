"""What one job costs: the server's statements by EXPLAIN (ANALYZE, BUFFERS, WAL), and the worker by its CPU time."""

import json
import time
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

from bench import workers
from jobs.claims import Ended
from jobs.conf import settings
from jobs.lifecycle import Appetite, Exchange, held
from jobs.literals import array
from jobs.outcomes import Succeeded
from jobs.queries import DjangoSession, load
from workers.worker import Plan, Worker

_COUNTERS = {"pages": "Shared Hit Blocks", "WAL records": "WAL Records", "WAL bytes": "WAL Bytes"}
_ROUNDS = 10  # of each statement; the first two warm the caches up and do not count


def measure(jobs: int | None, _: int) -> dict[str, Any]:
    """Explain batches as a worker sends them, then drain in this process; figures are for one job, in microseconds."""
    count = jobs or 40_000
    workers.fill(settings.CLAIM_BATCH * _ROUNDS)
    figures: dict[str, Any] = {}
    costs = [_explained() for _ in range(_ROUNDS)][2:]
    for statement in costs[0]:
        for name in costs[0][statement]:
            each = sorted(cost[statement][name] for cost in costs)
            figures[f"{statement}: {name}"] = each[len(each) // 2] / settings.CLAIM_BATCH
    return figures | _worker(count)


def _explained() -> dict[str, dict[str, float]]:
    """Claim a batch and report that it has succeeded; returns what each statement cost."""
    session, appetite = DjangoSession(), Appetite(uuid.uuid4())
    claim = Exchange(session, appetite, [], settings.CLAIM_BATCH)
    costs = {statement: _explain(statement, parameters) for statement, parameters in claim.fetches}
    ended = [Ended(each, Succeeded(), 0.00001) for each in held(session, appetite.worker_id)]
    report = Exchange(session, appetite, ended, 0)
    return costs | {statement: _explain(statement, parameters) for statement, parameters in report.fetches}


def _explain(statement: str, parameters: Mapping[str, Any]) -> dict[str, float]:
    """Run a statement and return its time, pages read from the cache, and log written."""
    written = {name: array(value) if isinstance(value, list) else value for name, value in parameters.items()}
    query = f"explain (analyze, buffers, wal, timing off, format json) {load(statement)}"
    plan = workers.execute(query, **written)
    (whole,) = json.loads(plan) if isinstance(plan, str) else plan
    roots = [whole["Plan"], *_apart(whole["Plan"])]
    return {"us": whole["Execution Time"] * 1000} | {
        ours: float(sum(root[theirs] for root in roots)) for ours, theirs in _COUNTERS.items()
    }


def _apart(plan: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the parts of a statement that nothing reads: they run after the rest, which does not count them in."""
    read = {node["CTE Name"] for node in _nodes(plan) if "CTE Name" in node}
    named = {part["Subplan Name"].removeprefix("CTE "): part for part in plan["Plans"] if "Subplan Name" in part}
    return [part for name, part in named.items() if part["Node Type"] == "ModifyTable" and name not in read]


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for part in plan.get("Plans", ()):
        yield from _nodes(part)


def _worker(count: int) -> dict[str, float]:
    """Drain in this process; returns the CPU time of the loop's thread and of all others."""
    workers.fill(count)
    worker = Worker(Plan(drain=True))
    loop, whole = time.thread_time(), time.process_time()
    worker.run()
    loop, whole = time.thread_time() - loop, time.process_time() - whole
    return {
        "worker, its loop: us": loop / count * 1e6,
        "worker, the threads of handlers and all others: us": (whole - loop) / count * 1e6,
    }
