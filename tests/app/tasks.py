"""Handlers that leave traces in a table of their own, for tests that look at what really ran."""

import os
import re
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

from django.db import connection, transaction

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


_kept: list[bytes] = []


@job(name="whoami", isolation="process")
def whoami(ctx: Context, megabytes: int = 0) -> int:
    """Report, fill so much memory for good, and return the id of the process."""
    ctx.progress(1, 2, "half")
    ctx.log("a line")
    _kept.append(b"x" * (megabytes * 1024 * 1024))
    return os.getpid()


@job(name="isolated_hang", isolation="process", max_attempts=1)
def isolated_hang(path: str, *, helper: bool = False) -> None:
    """Leave the ids of this process and of a helper in a file, and hang where no other thread gets the interpreter."""
    pids = [os.getpid()]
    if helper:
        pids.append(subprocess.Popen(["sleep", "600"]).pid)
    Path(f"{path}.new").write_text(" ".join(map(str, pids)))
    Path(f"{path}.new").rename(path)
    re.match(r"(a+)+b", "a" * 64)


@job(name="isolated_nap", isolation="process")
def isolated_nap(path: str, seconds: float) -> str:
    """Leave the id of this process in a file, and sleep."""
    Path(f"{path}.new").write_text(str(os.getpid()))
    Path(f"{path}.new").rename(path)
    time.sleep(seconds)
    return "rested"


@job(name="isolated_end", isolation="process", max_attempts=1)
def isolated_end(how: str) -> str:
    """End in an unusual way."""
    if how == "exit":
        os._exit(3)
    if how == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if how == "transaction":
        transaction.set_autocommit(False)
    if how == "raise":
        raise ValueError("in the child")
    if how == "thread":
        threading.Thread(target=time.sleep, args=(600,)).start()
    if how == "fork":  # a copy that comes back to the caller, as no handler should
        return "parent" if os.fork() else "copy"
    return how


@job(name="isolated_sum", isolation="process")
def isolated_sum(ctx: Context) -> int:
    """Add up what the parents returned."""
    return sum(parent.result for parent in ctx.parents.values())


@job(name="isolated_metadata", isolation="process")
def isolated_metadata(ctx: Context) -> dict[str, Any]:
    """Return what the caller attached."""
    return dict(ctx.metadata)


@job(name="isolated_backend", isolation="process")
def isolated_backend() -> list[int]:
    """Return the ids of this process and of the one that serves it in PostgreSQL."""
    with connection.cursor() as cursor:
        cursor.execute("select pg_backend_pid()")
        return [os.getpid(), cursor.fetchone()[0]]


@job(name="fork_in_worker")
def fork_in_worker(path: str) -> None:
    """Leave a copy of the worker's process behind, with all that it had open, and its id in a file."""
    if pid := os.fork():
        Path(f"{path}.new").write_text(str(pid))
        Path(f"{path}.new").rename(path)
    else:
        time.sleep(600)
        os._exit(0)
