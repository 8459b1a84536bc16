"""Handlers that leave traces in a table of their own, for tests that look at what really ran."""

import os
import signal
import time
from pathlib import Path

from django.db import connection

from jobs import Context, job
from scheduling import Backoff

_AT_ONCE = Backoff(base=0.05, factor=1.0, cap=0.05)


def trace(job_id: object, word: str) -> None:
    """Write a line into the table `trace`, which the test has made."""
    with connection.cursor() as cursor:
        cursor.execute("insert into trace (job_id, word) values (%s, %s)", [str(job_id), word])


@job(name="trace")
def append_trace(ctx: Context, word: str = "ran") -> None:
    """Leave one trace."""
    trace(ctx.job_id, word)


@job(name="do_nothing")
def do_nothing() -> None:
    """Do nothing."""


@job(name="note")
def note(path: str, word: str) -> None:
    """Leave a trace in a file, which needs no database."""
    with Path(path).open("a") as file:
        file.write(f"{word}\n")


@job(name="trace_and_hang")
def trace_and_hang(ctx: Context, seconds: float = 600) -> None:
    """Leave a trace, and do not come back for a while; a second attempt comes back at once."""
    trace(ctx.job_id, f"attempt {ctx.attempt}")
    if ctx.attempt == 1:
        time.sleep(seconds)


@job(name="kill_its_worker", max_attempts=3, backoff=_AT_ONCE)
def kill_its_worker(ctx: Context) -> None:
    """Leave a trace and kill the process that runs it."""
    trace(ctx.job_id, f"attempt {ctx.attempt}")
    os.kill(os.getpid(), signal.SIGKILL)


@job(name="nap")
def nap(seconds: float) -> float:
    """Sleep, and tell what this process takes the time to be."""
    time.sleep(seconds)
    return time.time()
