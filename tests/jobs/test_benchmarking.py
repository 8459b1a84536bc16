"""The benchmark on demand: measured by a child, one at a time, and no child outlives who asked for it."""

import asyncio
import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from asgiref.sync import async_to_sync

from jobs.benchmarking import N_LIMIT, RUNS, BenchmarkBusy, BenchmarkFailed, BenchmarkTimedOut, run
from scheduling.comparison import MEASURES
from tests.support import ROOT, measuring, wait_until

LARGE = 50 * N_LIMIT  # takes minutes: whoever waits for it is not done by himself


async def started() -> psutil.Process:
    """Return the child of a benchmark once it is there."""
    (child,) = await asyncio.to_thread(wait_until, measuring)
    return child


@pytest.mark.parametrize(
    ("choice", "algorithms"), [("heap", ["heap"]), ("wheel", ["wheel"]), ("both", ["heap", "wheel"])]
)
async def test_each_choice_is_measured(choice: str, algorithms: list[str]):
    """The figures are those of what was asked for, on as many entries."""
    found = await run(100, choice)
    assert (found.n, found.runs, list(found.figures)) == (100, RUNS, algorithms)
    assert all(getattr(figures, name) > 0 for figures in found.figures.values() for name in MEASURES)


def test_it_runs_where_there_is_no_event_loop():
    """A thread of a WSGI server can ask as well, and another one after it."""
    for _ in range(2):
        assert async_to_sync(run)(20, "heap").n == 20


async def test_the_child_is_killed_when_its_time_is_up():
    """Whoever waits is told what to change, and nothing goes on in the background; the next may be measured."""
    with pytest.raises(BenchmarkTimedOut, match=r"5,000,000 entries took more than 0\.5 s here: give a smaller n"):
        await run(LARGE, "both", time_limit=0.5)
    assert measuring() == []
    assert (await run(20, "heap")).n == 20


async def test_the_child_is_killed_when_nobody_waits():
    """Where the request is cancelled, so is the measurement, and the next may begin."""
    task = asyncio.create_task(run(LARGE, "both"))
    child = await started()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not child.is_running()
    assert (await run(20, "heap")).n == 20


async def test_only_one_runs_at_a_time():
    """A second one is refused at once, from this event loop and from that of another thread, and disturbs nothing."""
    task = asyncio.create_task(run(LARGE, "both"))
    await started()
    with pytest.raises(BenchmarkBusy, match="Another benchmark is running here"):
        await run(20, "heap")
    refused: list[bool] = []

    def ask() -> None:
        with pytest.raises(BenchmarkBusy):
            asyncio.run(run(20, "heap"))
        refused.append(True)

    thread = threading.Thread(target=ask)
    thread.start()
    await asyncio.to_thread(thread.join, 20)
    assert refused == [True]
    assert not task.done()
    assert len(measuring()) == 1
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize(
    ("executable", "why"),
    [
        ("/bin/false", r"No such file or directory|exit status"),
        ("{tmp}/python-that-complains", rf"exit status 3, a secret reason, {re.escape(str(ROOT))}"),
        ("{tmp}/python-that-babbles", "Expecting value"),
    ],
)
async def test_a_child_that_fails_is_logged_and_tells_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture, executable: str, why: str
):
    """The log says why, and what was asked for; whoever asked learns only that it did not work.

    The child that complains also shows where it was told to look for modules.
    """
    for name, script in (
        ("complains", 'echo "a secret reason, $PYTHONPATH" >&2; exit 3'),
        ("babbles", "echo nonsense"),
    ):
        file = tmp_path / f"python-that-{name}"
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)
    monkeypatch.setattr(sys, "executable", executable.format(tmp=tmp_path))
    monkeypatch.setattr(sys, "exec_prefix", str(tmp_path))
    with pytest.raises(BenchmarkFailed) as failed:
        await run(20, "heap")
    assert str(failed.value) == "The benchmark failed; the reason has been logged."
    (record,) = [record for record in caplog.records if record.name == "dilamme.benchmark"]
    assert record.getMessage().startswith("The benchmark of heap with n=20 failed: ")
    assert re.search(why, record.getMessage())


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], None]:
    """Go where nothing can be imported from but a trap; the argument names the server that runs this Python."""
    trap = tmp_path / "scheduling"
    trap.mkdir()
    (trap / "__init__.py").write_text("raise RuntimeError('the wrong one')")
    monkeypatch.chdir(tmp_path)
    return lambda server: monkeypatch.setattr(sys, "executable", server)


@pytest.mark.parametrize("server", [sys.executable, "/usr/sbin/apache2", ""], ids=["python", "embedded", "unknown"])
async def test_the_module_is_found_from_anywhere(elsewhere: Callable[[str], None], server: str):
    """Whatever the working directory holds, and whatever program has this Python in it, the child is our own."""
    elsewhere(server)
    assert (await run(20, "wheel")).n == 20
