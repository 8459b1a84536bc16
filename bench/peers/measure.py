"""The measurements, in terms of an adapter: what is measured is the same for every system, and checked.

All of it happens in the interpreter of the system that is measured, if that is Python, so nothing of Dilamme is
imported here.
"""

import math
import os
import random
import statistics
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg

from bench.peers import ledger
from bench.peers.adapter import Adapter
from bench.peers.crew import Crew, Unfinished, working
from bench.peers.registry import Peer

_CHUNK = 10_000  # jobs in one bulk call
_BOOT = 60.0  # seconds in which a worker has to have run its first job
_ONE_JOB = 30.0  # seconds in which a single job has to have run
_RECORDING = 30.0  # seconds in which the system has to know that all ran
_AHEAD = (2.0, 4.0)  # seconds by which scheduled jobs are ahead of their time


def enqueue(adapter: Adapter, peer: Peer, options: dict[str, Any], _: Path) -> dict[str, Any]:
    """Enqueue one by one and in bulk; jobs per second."""
    adapter.setup()
    singles = options["singles"]
    adapter.enqueue_each(range(100))  # connections are opened and statements prepared
    started = time.perf_counter()
    adapter.enqueue_each(range(100, 100 + singles))
    figures: dict[str, Any] = {"enqueued": singles, "enqueue/s": singles / (time.perf_counter() - started)}
    stored = 100 + singles
    if peer.bulk:
        numbers = range(stored, stored + options["bulk"])
        started = time.perf_counter()
        adapter.enqueue_bulk(numbers)
        figures |= {"bulk": len(numbers), "bulk/s": len(numbers) / (time.perf_counter() - started)}
        stored += len(numbers)
    if (waiting := adapter.waiting()) != stored:
        raise Unfinished(f"{stored:,} were enqueued, but {waiting:,} are stored")
    return figures


def drain(adapter: Adapter, peer: Peer, options: dict[str, Any], log: Path) -> dict[str, Any]:
    """Have workers run jobs that wait for them.

    The clock runs from the moment at which the last of the processes has run its first job, and only the jobs that ran
    since count, so that the time a process takes to start is nobody's throughput. It stops when the system itself says
    that all is done: writing down that a job ended belongs to the work.
    """
    adapter.setup()
    count, processes = options["jobs"], options["processes"]
    if peer.bulk:
        for start in range(0, count, _CHUNK):
            adapter.enqueue_bulk(range(start, min(start + _CHUNK, count)))
    else:
        adapter.enqueue_each(range(count))
    _analyse()
    with working(adapter.workers(processes), log) as crew:
        crew.wait_for_runs(1, _BOOT)
        crew.wait_for_runs(count, options["patience"])
        ended = _wait_for_record(adapter, crew, count)
    entries = ledger.entries()
    first: dict[int, float] = {}
    for entry in entries:
        first.setdefault(entry.process, entry.at)
    started = max(first.values())
    counted = sum(entry.at >= started for entry in entries)
    return {
        "jobs": count,
        "processes": len(first),
        "counted": counted,
        "jobs/s": counted / (ended - started),
        "mistakes": ledger.mistakes(range(count)),
    }


def latency(adapter: Adapter, peer: Peer, options: dict[str, Any], log: Path) -> dict[str, Any]:
    """Enqueue single jobs while the worker is idle, then some that are to run at a time; milliseconds."""
    adapter.setup()
    with working(adapter.workers(1), log) as crew:
        adapter.enqueue_each([0])
        crew.wait_for_runs(1, _BOOT)
        time.sleep(1.0)  # the worker has settled
        figures, used = _pick_up(adapter, peer, crew, options)
        if peer.schedules:
            figures |= _on_time(adapter, crew, used, options["scheduled"])
            used += options["scheduled"]
        _wait_for_record(adapter, crew, used)
    return figures | {"mistakes": ledger.mistakes(range(used))}


def _pick_up(adapter: Adapter, peer: Peer, crew: Crew, options: dict[str, Any]) -> tuple[dict[str, Any], int]:
    """From the commit of a job to its handler's start; also the number of jobs so far."""
    samples: list[float] = []
    until = time.monotonic() + options["seconds"]
    while len(samples) < options["samples"] and time.monotonic() < until:
        # At a random point between two looks of a worker that polls: right after its last job the wait is the longest.
        time.sleep(random.uniform(0.02, 0.05 + peer.poll))
        number = len(samples) + 1
        committed = adapter.enqueue_each([number]) or time.monotonic()
        crew.wait_for_runs(number + 1, _ONE_JOB)
        samples.append((ledger.entries()[-1].at - committed) * 1000)
    return {"pick-ups": len(samples)} | _percentiles("pick-up", samples), len(samples) + 1


def _on_time(adapter: Adapter, crew: Crew, start: int, count: int) -> dict[str, Any]:
    """From the moment for which a job was scheduled to the handler's start; early is negative."""
    offset = time.time() - time.monotonic()
    due: dict[int, float] = {}
    for number in range(start, start + count):
        moment = datetime.now(UTC) + timedelta(seconds=random.uniform(*_AHEAD))
        adapter.enqueue_at(number, moment)
        due[number] = moment.timestamp() - offset
    crew.wait_for_runs(start + count, _AHEAD[1] + _ONE_JOB)
    late = [(entry.at - due[entry.number]) * 1000 for entry in ledger.entries() if entry.number in due]
    return {"scheduled": count} | _percentiles("on-time", late) | {"earliest ms": min(late)}


def _percentiles(name: str, samples: Sequence[float]) -> dict[str, float]:
    ordered = sorted(samples)
    return {
        f"{name} p50 ms": statistics.median(ordered),
        f"{name} p99 ms": ordered[math.ceil(len(ordered) * 0.99) - 1],
    }


def _wait_for_record(adapter: Adapter, crew: Crew, count: int) -> float:
    """Wait until the system itself has all jobs for done; returns when it had. Raises if it has others left."""

    def state() -> str:
        return f"{adapter.finished():,} of {count:,} are done in its own words"

    crew.wait_until(lambda: adapter.finished() >= count, _RECORDING, 0.005, state)
    recorded = time.monotonic()
    if left := adapter.waiting():
        raise Unfinished(f"all ran, but {left:,} are left in its own words")
    return recorded


def _analyse() -> None:
    """Let the planner know the tables, as it would in a system that has run for a minute."""
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        connection.execute("analyze")
