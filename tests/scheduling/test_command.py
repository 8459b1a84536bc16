"""`python -m scheduling`, and the example of the journal's page, as people run them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from scheduling import DelayedScheduler, Journal
from scheduling.entries import Kind
from scheduling.frames import FRAME_SIZE, HEADER_SIZE, MAGIC, MAX_FRAME, MAX_RECORD

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "journal.md"


def start(*arguments: object) -> subprocess.Popen[str]:
    """Start the command."""
    command = [sys.executable, "-m", "scheduling", *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run(*arguments: object) -> tuple[int, str, str]:
    """Run the command and return its status and what it said."""
    process = start(*arguments)
    said, complained = process.communicate()
    return process.returncode, said, complained


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a journal may be."""
    return tmp_path / "journal"


def test_help_names_the_commands() -> None:
    """Each command is there with a sentence."""
    status, said, _ = run("--help")
    assert status == 0
    assert set(re.findall(r"^    (\w+)  ", said, re.MULTILINE)) == {"demo", "inspect", "repair"}


def test_a_wrong_command_is_told_the_usage() -> None:
    """The exit status is argparse's 2."""
    status, _, complained = run("mend", "x")
    assert status == 2
    assert "usage: python -m scheduling" in complained


def test_the_demo_goes_on_after_kill_9(path: Path) -> None:
    """Killed in the middle and started again, it fires what is left; only the entry at hand may fire twice."""
    process = start("demo", path, "--entries", 8, "--spacing", 0.1)
    lines = []
    while len(lines) < 11:
        lines.append(process.stdout.readline())
    process.kill()
    lines += process.stdout.readlines()  # and not communicate, which passes over what readline has read ahead
    process.communicate()
    before = re.findall(r"^fired (\d+), ", "".join(lines), re.MULTILINE)
    status, said, _ = run("demo", path)
    assert status == 0
    assert re.match(r"going on with \d entries\n", said)
    after = re.findall(r"^fired (\d+), .*", said, re.MULTILINE)
    assert sorted({*before, *after}) == [str(number) for number in range(1, 9)]
    assert set(before) & set(after) <= {before[-1]}
    assert len(after) == len(set(after))
    assert said.endswith("nothing is left\n")


def test_inspect_says_what_is_there_and_changes_nothing(path: Path) -> None:
    """Records by kind, what is pending and dead, the sizes, and that all is well."""
    with DelayedScheduler(path, tick=1.0, max_attempts=1) as scheduler:
        for due in (1, 1, 1, 1000):
            scheduler.enqueue(b"job", due=due, now=0)
        first, second, _ = scheduler.tick(1)
        scheduler.done(first.id)
        scheduler.failed(second.id, "no luck\nat all", now=1)
        before = path.read_bytes()
        status, said, _ = run("inspect", path)  # while it is in use
    assert path.read_bytes() == before
    assert status == 0
    assert said.splitlines() == [
        f"size       {len(before)} bytes, {HEADER_SIZE} of them the last snapshot",
        "records    7: 1 died, 1 done, 4 enqueued, 1 started",
        "pending    2, 1 of them in flight",
        "dead       1",
        "           entry 2 after 1 attempts: no luck",
        "damage     none",
    ]


def test_inspect_tells_a_torn_tail_from_damage(path: Path) -> None:
    """Both end with status 1, and say what will happen or what to do."""
    with DelayedScheduler(path) as scheduler:
        for _ in range(3):
            scheduler.enqueue(b"job", due=1, now=0)
    data = path.read_bytes()
    path.write_bytes(data[:-1])
    status, said, _ = run("inspect", path)
    assert status == 1
    assert "a torn tail, which the next opening cuts; the last frame is not whole" in said
    path.write_bytes(data[:HEADER_SIZE] + b"\0" + data[HEADER_SIZE + 1 :])
    status, said, _ = run("inspect", path)
    assert status == 1
    assert f"bytes from byte {HEADER_SIZE}: damage, see `repair`; a whole frame follows" in said


def test_repair_says_what_it_has_cut_and_where_the_rest_is(path: Path) -> None:
    """After it the journal is in order, and a second repair has nothing to do."""
    with DelayedScheduler(path) as scheduler:
        for _ in range(3):
            scheduler.enqueue(b"job", due=1, now=0)
    data = bytearray(path.read_bytes())
    data[-60] ^= 1  # within the second of three frames of 40 bytes
    path.write_bytes(data)
    status, said, _ = run("repair", path)
    assert status == 0
    assert re.match(r"cut \d+ bytes from byte \d+ on \(a whole frame follows at byte \d+\); ", said)
    assert said.endswith(f"the damaged file is {path}.damaged-1\n")
    assert run("repair", path) == (0, "nothing to repair\n", "")
    with DelayedScheduler(path) as scheduler:
        assert len(scheduler) == 1


@pytest.mark.parametrize("command", ["inspect", "repair", "demo"])
def test_a_file_that_cannot_be_used_is_an_error_of_one_line(path: Path, command: str) -> None:
    """No traceback, but what is wrong with which file."""
    path.write_bytes(b"no journal")
    status, said, complained = run(command, path)
    assert (status, said) == (1, "")
    assert complained == (
        f"error: {path} is no journal, or a damaged one: it does not begin like a journal. Restore a backup.\n"
    )


def test_a_missing_file_and_foreign_records_are_errors_too(path: Path) -> None:
    """Nothing is made by looking."""
    assert run("inspect", path)[0] == run("repair", path)[0] == 1
    assert list(path.parent.iterdir()) == []
    with Journal(path) as journal:
        journal.append(b"{}")
    status, _, complained = run("inspect", path)
    assert status == 1
    assert complained == "error: Record b'{}' is none of a delayed scheduler.\n"


def test_the_demo_names_who_has_the_journal(path: Path) -> None:
    """A second process is told path and process id."""
    with Journal(path):
        status, _, complained = run("demo", path)
    assert status == 1
    assert re.match(rf"error: Journal {path} is open already, in process \d+", complained)


def test_the_example_of_the_page_runs(tmp_path: Path) -> None:
    """The Python of `docs/journal.md` does what its comments say."""
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-c", example],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == re.findall(r"# prints: (.*)", example)


def test_the_page_has_the_layout_of_the_code() -> None:
    """Sizes, limits, the magic and the kinds of records are those that the code uses."""
    text = PAGE.read_text()
    assert f"Header, {HEADER_SIZE} bytes" in text
    assert f"{FRAME_SIZE} bytes and the payload" in text
    assert f"{MAX_RECORD // 2**20} MiB" in text
    assert f"{MAX_FRAME // 2**20} MiB" in text
    assert MAGIC.hex(" ") in text
    assert {(int(value), name) for value, name in re.findall(r"^\| (\d) \| `([A-Z_]+)` \|", text, re.MULTILINE)} == {
        (kind.value, kind.name) for kind in Kind
    }
