"""`manage.py demo --once`, run as a new user runs it."""

import contextlib
import os
import re
import subprocess
import sys

import psutil
import pytest

from tests.support import ROOT, database_url, process_environment

pytestmark = pytest.mark.django_db(transaction=True)


def demo(**environment: str) -> subprocess.CompletedProcess[str]:
    """Run the demo on this test's database."""
    plain = process_environment(**{"DJANGO_SETTINGS_MODULE": "dilamme_project.settings", **environment})
    return subprocess.run(
        [sys.executable, "manage.py", "demo", "--once", "--port", "0"],
        cwd=ROOT,
        env=plain,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def processes() -> set[int]:
    """Return the processes other than this one that work on this test's database."""
    found = set()
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.pid != os.getpid() and process.environ().get("DATABASE_URL") == database_url():
                found.add(process.pid)
    return found


def test_everything_ends_as_it_should_and_nothing_is_left_behind():
    """It exits with 0, shows each job with its end, says where to look, and leaves no process."""
    run = demo()
    assert run.returncode == 0, run.stdout + run.stderr
    rows = re.findall(r"^  (.+?)\s+[0-9a-f-]{36}  (\w+)\s+(\d+)\s+[\d,]+ ms$", run.stdout, re.MULTILINE)
    assert rows == [
        ("Analyse a log file (over REST)", "completed", "1"),
        ("Share its summary (waits for it)", "completed", "1"),
        ("Due in three seconds", "completed", "1"),
        ("Priority Low", "completed", "1"),
        ("Priority Medium", "completed", "1"),
        ("Priority High", "completed", "1"),
        ("Fails twice, then succeeds", "completed", "3"),
        ("Ends among the dead letters", "failed", "2"),
        ("Summary to a webhook", "completed", "1"),
        ("Summary by mail", "completed", "1"),
    ]
    assert re.search(r"Admin +http://127\.0\.0\.1:\d+/admin/dilamme/job/ +user operator, password \S{12,}", run.stdout)
    assert re.search(r"API +http://127\.0\.0\.1:\d+/api/v1/docs +header X-API-Key: \S{24,}", run.stdout)
    assert processes() == set()


def test_it_says_what_went_wrong_and_exits_with_one():
    """A handler that may not read its file makes the demo fail, with the job and the reason named."""
    run = demo(DJANGO_SETTINGS_MODULE="tests.broken_demo")
    assert run.returncode == 1
    assert "Not everything ended as it should:" in run.stderr
    assert "Analyse a log file (over REST): failed after 1 attempts instead of completed after 1" in run.stderr
    assert "LOG_DIRECTORIES" in run.stderr
    assert processes() == set()


def test_a_process_that_does_not_come_up_is_named():
    """A worker that ends at once is reported with its log, and everything else is taken down again."""
    run = demo(DJANGO_SETTINGS_MODULE="tests.broken_demo", BREAK_THE_WORKER="1")
    assert run.returncode == 1
    assert re.search(r"The worker process ended with code \d+; see \S+demo-worker\.log", run.stderr)
    assert processes() == set()
    assert (ROOT / ".dilamme" / "demo-worker.log").exists()
