"""Rules of the house that a machine can check: who writes state, who opens cursors, how large things grow."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.queries import load

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGES = ("scheduling", "jobs", "workers", "dilamme_project")
SQL = sorted((ROOT / "jobs" / "sql").glob("*.sql"))

# Longer than they might be, each with its reason.
LONG_FUNCTIONS: dict[str, str] = {}
UNGUARDED = {"payload", "run_at", "scheduled_at"}  # columns that an enqueue may write in a job that nobody has claimed
LONG_FILES: dict[str, str] = {}


def sources() -> list[Path]:
    """Return the Python files of the product, without migrations."""
    return [path for package in PACKAGES for path in (ROOT / package).rglob("*.py") if "migrations" not in path.parts]


def nodes(path: Path) -> Iterator[ast.AST]:
    """Walk the syntax of a file."""
    return ast.walk(ast.parse(path.read_text()))


def name_of(path: Path) -> str:
    """Return a path as it is written in an import-free sentence."""
    return str(path.relative_to(ROOT))


def test_only_lifecycle_changes_a_status():
    """No other module assigns, updates or saves a status of a job."""
    offenders = []
    for path in sources():
        if path.is_relative_to(ROOT / "jobs" / "lifecycle"):
            continue
        for node in nodes(path):
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            assigned = any(isinstance(t, ast.Attribute) and t.attr in ("status", "worker_id") for t in targets)
            called = node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""
            updated = called in ("update", "bulk_update", "create", "update_or_create") and any(
                keyword.arg in ("status", "attempt", "worker_id") for keyword in node.keywords
            )
            if assigned or updated:
                offenders.append(f"{name_of(path)}:{node.lineno}")
    assert offenders == []


def test_statements_that_change_a_status_are_run_by_lifecycle_alone():
    """A statement that updates jobs is named nowhere outside `jobs/lifecycle`.

    But for the one that gives a job that nobody has claimed another payload and time, and sets nothing else.
    """
    changing = {path.stem for path in SQL if re.search(r"update dilamme_job\b", path.read_text())}
    assert set(re.findall(r"(\w+) = ", load("replace").partition("from given")[0].partition(" set ")[2])) <= UNGUARDED
    changing -= {"replace", "report"}  # the latter keeps what a handler says, and sets nothing else either
    assert changing == {
        "blame", "cancel", "cascade", "claim", "claim_limited", "complete", "edit", "end", "expire", "retry", "settle"
    }  # fmt: skip
    offenders = [
        f"{name_of(path)}:{node.lineno}"
        for path in sources()
        if not path.is_relative_to(ROOT / "jobs" / "lifecycle")
        for node in nodes(path)
        if isinstance(node, ast.Call)
        and getattr(node.func, "attr", "") == "fetch"
        and isinstance(node.args[0], ast.Constant)
        and node.args[0].value in changing
    ]
    assert offenders == []


def test_only_queries_opens_a_cursor():
    """SQL runs in one place; the listener sends nothing but LISTEN and a probe on a connection of its own."""
    allowed = {"jobs/queries.py", "jobs/listener.py"}
    offenders = {
        name_of(path)
        for path in sources()
        for node in nodes(path)
        if isinstance(node, ast.Attribute) and node.attr in ("cursor", "execute", "executemany")
    }
    assert offenders <= allowed


def test_every_statement_is_used_and_says_why_it_is_there():
    """Each file in `jobs/sql` is named in the code and opens with a comment."""
    code = "".join(path.read_text() for path in sources())
    for path in SQL:
        assert path.read_text().startswith("-- "), path.name
        used = f'"{path.stem}"' in code or any(f"-- include {path.stem}\n" in other.read_text() for other in SQL)
        assert used, path.name


def test_files_stay_short():
    """No file has more than 300 lines, but for those with a reason."""
    long = {name_of(path) for path in sources() if len(path.read_text().splitlines()) > 300}
    assert long == set(LONG_FILES)


def test_functions_stay_short():
    """No function has more than 40 lines, but for those with a reason."""
    long = {
        f"{name_of(path)}:{node.name}"
        for path in sources()
        for node in nodes(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno - node.lineno >= 40
    }
    assert long == set(LONG_FUNCTIONS)


@pytest.mark.parametrize("path", sorted((ROOT / "tests").rglob("test_*.py")), ids=name_of)
def test_every_test_says_what_it_shows(path):
    """Each test has a sentence and sleeps only to let time pass that it is about."""
    for node in nodes(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            assert ast.get_docstring(node), f"{node.name} has no docstring"


def test_no_committed_file_names_a_package_index():
    """Requirements hold versions and hashes; where they come from is the machine's business."""
    for path in (ROOT / "requirements").iterdir():
        assert not re.search(r"https?://|--(extra-)?index-url|--find-links", path.read_text()), path.name
