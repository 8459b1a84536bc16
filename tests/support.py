"""What tests share: waiting without sleeping blindly, workers in threads and in processes, and how to read a job."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import psutil
from django.db import connection, connections

from jobs import job as declare
from jobs.models import Job, JobEvent
from jobs.registry import registry
from workers.worker import Plan, Worker

ROOT = Path(__file__).resolve().parent.parent
T = TypeVar("T")


def wait_until(condition: Callable[[], T], *, within: float = 20.0, what: str = "") -> T:
    """Return what `condition` returns as soon as it is true; fail after `within` seconds."""
    deadline = time.monotonic() + within
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"It did not happen within {within} s: {what or condition}")
        time.sleep(0.01)
    return found


def status_of(job_id: uuid.UUID) -> str:
    """Return the status of a job as stored now."""
    return Job.objects.values_list("status", flat=True).get(pk=job_id)


def wait_for(job_id: uuid.UUID, *statuses: str, within: float = 20.0) -> Job:
    """Return the job once it has one of these statuses."""
    wait_until(lambda: status_of(job_id) in statuses, within=within, what=f"{job_id} {statuses}")
    return Job.objects.get(pk=job_id)


def wait_for_all(status: str, count: int, within: float = 60.0) -> None:
    """Return once `count` jobs have this status."""
    wait_until(lambda: Job.objects.filter(status=status).count() >= count, within=within, what=f"{count} {status}")


def history_of(job_id: uuid.UUID) -> list[str]:
    """Return the kinds of a job's events, oldest first."""
    return list(JobEvent.objects.filter(job=job_id).order_by("id").values_list("kind", flat=True))


def measuring() -> list[psutil.Process]:
    """Return the children of this process that run a benchmark."""
    found = []
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
            if "scheduling.comparison" in child.cmdline():
                found.append(child)
    return found


@contextlib.contextmanager
def handler(function: Callable[..., Any], **options: Any) -> Iterator[Any]:
    """Register a function as a job type for the length of a block."""
    task = declare(**{"name": f"test_{function.__name__}", **options})(function)
    try:
        yield task
    finally:
        registry.remove(task.name)


class WorkerThread:
    """A worker in a thread of this process, with the real loop."""

    def __init__(self, **plan: Any) -> None:
        self.worker = Worker(Plan(**{"concurrency": 4, "grace": 10.0, **plan}))
        self.code: int | None = None
        self.thread = threading.Thread(target=self._run, daemon=True)  # a test that fails to stop it still ends
        self.thread.start()

    def _run(self) -> None:
        self.code = self.worker.run()
        connections.close_all()

    def stop(self) -> int | None:
        """Stop it in order and return its exit code."""
        if self.thread.is_alive():
            self.worker.stop()
        self.thread.join(timeout=30)
        assert not self.thread.is_alive(), "the worker did not stop"
        return self.code


class WorkerProcess:
    """A `manage.py runworker` on this test's database."""

    def __init__(self, arguments: tuple[str, ...], environment: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "manage.py", "runworker", *arguments],
            cwd=ROOT,
            env=process_environment(**environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def signal(self, number: int) -> None:
        """Send it a signal."""
        self.process.send_signal(number)

    def wait(self, within: float = 30.0) -> int:
        """Wait for its end and return its exit code."""
        return self.process.wait(within)

    def end(self) -> str:
        """Kill it if it still runs, and return what it printed."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        output, _ = self.process.communicate(timeout=30)
        return output


def process_environment(**more: str) -> dict[str, str]:
    """Return the environment in which another process works on this test's database."""
    return {
        **os.environ,
        "DATABASE_URL": database_url(),
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        **more,
    }


def database_url() -> str:
    """Return the URL of the database that this test uses."""
    url, _, query = os.environ["DATABASE_URL"].partition("?")
    base, _, _ = url.rpartition("/")
    return f"{base}/{connection.settings_dict['NAME']}" + (f"?{query}" if query else "")
