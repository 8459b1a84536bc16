"""`python -m bench structures`, and the command line that it is part of, as people run them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench import structures
from scheduling.comparison import FLOORS, MEASURES
from scheduling.contenders import CONTENDERS
from tests.support import ROOT

NO_SIZE = "is no size: give whole numbers from 1 to 10,000,000, with commas, as 1000,10000,100000,1000000"


def bench(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the command without any database that it could use."""
    environment = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    command = [sys.executable, "-m", "bench", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def measured(tmp_path_factory) -> tuple[subprocess.CompletedProcess[str], dict]:
    """Measure two small sizes; returns what was said, and what is in the file."""
    file = tmp_path_factory.mktemp("bench") / "figures.json"
    run = bench("structures", "--sizes", "20, 1_00", "--json", file)
    assert run.returncode == 0, run.stderr
    return run, json.loads(file.read_text())


def test_a_table_for_each_size(measured):
    """A row for each measure, a column for each structure and its ratio, every cell a number."""
    tables = measured[0].stdout.strip().split("\n\n")
    assert [table.splitlines()[0] for table in tables] == [f"{n} entries, median of 9 runs" for n in (20, 100)]
    for table in tables:
        heads, *rows = table.splitlines()[1:]
        assert heads.split("  ")[-1].strip() == "wheel / dict"
        assert [row[:26].strip() for row in rows] == list(structures._LABELS.values())
        assert all(len(row[26:].split()) == len(CONTENDERS) + len(FLOORS) for row in rows)
        assert all(float(cell.replace(",", "")) > 0 for row in rows for cell in row[26:].split()[:4])


def test_the_file_has_all_figures(measured):
    """What ran where and how often, each figure unrounded, and the ratios."""
    _, found = measured
    assert found["python"].startswith(f"{sys.version_info.major}.{sys.version_info.minor}.")
    assert found["machine"].keys() == {"cpu", "cores", "system"}
    for n, size in zip((20, 100), found["sizes"], strict=True):
        assert (size["n"], size["runs"], list(size["figures"])) == (n, 9, list(CONTENDERS))
        assert all(tuple(figures) == MEASURES for figures in size["figures"].values())
        for name, floor in FLOORS.items():
            for measure, ratio in size["ratios_to_floor"][name].items():
                assert ratio == size["figures"][name][measure] / size["figures"][floor][measure]


def test_a_short_run_says_nothing_beside(measured):
    """Progress is for sizes that take long."""
    assert measured[0].stderr == ""


@pytest.mark.parametrize("sizes", ["", "x", "0", "-5", "10,,20", "1e3", "10000001", "\N{ARABIC-INDIC DIGIT ONE}"])
def test_a_bad_size_is_refused(sizes):
    """The command names what it was given and what it would take, and measures nothing."""
    run = bench("structures", f"--sizes={sizes}")
    assert run.returncode == 2
    assert f"{sizes.replace('10,,20', '')!r} {NO_SIZE}" in run.stderr
    assert run.stdout == ""


def test_the_command_knows_its_measurements():
    """Each has a line in the help; one that is none is refused."""
    said = bench("--help").stdout
    assert all(name in said for name in ("drain", "latency", "enqueue", "structures"))
    assert "invalid choice: 'speed'" in bench("speed").stderr


@pytest.mark.parametrize("measurement", ["drain", "latency", "enqueue"])
def test_measurements_on_a_database_keep_their_options(measurement):
    """All of them take the number of jobs, of processes, and a file."""
    said = bench(measurement, "--help").stdout
    assert all(option in said for option in ("--jobs", "--processes", "--json"))


def test_enqueueing_is_measured(tmp_path: Path):
    """A measurement on a database of its own runs to its end, prints, and writes its file."""
    file = tmp_path / "figures.json"
    command = [sys.executable, "-m", "bench", "enqueue", "--jobs", "5", "--json", str(file)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    figures = json.loads(file.read_text())
    assert list(figures) == [
        "one by one per second",
        "bare INSERT per second",
        "one by one, of bare INSERT",
        "bare INSERT into the jobs' table per second",
        "one by one, of bare INSERT into the jobs' table",
        "bulk of 10,000 per second",
        "bare unnest per second",
        "bulk, of bare unnest",
    ]
    assert all(f"{name:<48} {value:>12,.2f}" in run.stdout for name, value in figures.items())
