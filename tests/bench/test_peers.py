"""The systems that `python -m bench peers` compares: how they are pinned, and what is said when one cannot be had."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bench.peers import install
from bench.peers.registry import PEERS
from tests.support import ROOT

FOLDER = ROOT / "bench" / "peers"
OTHERS = [peer for peer in PEERS.values() if not peer.ours]
GRAPHILE = PEERS["graphile_worker"]


def peers(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command with this environment and no other."""
    command = [sys.executable, "-m", "bench", "peers", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("peer", PEERS.values(), ids=PEERS)
def test_each_system_has_an_adapter(peer):
    """It is the module with the system's name."""
    assert (FOLDER / f"{peer.name}.py").read_text().count("\nADAPTER = ") == 1


@pytest.mark.parametrize("peer", OTHERS, ids=[peer.name for peer in OTHERS])
def test_each_requirement_is_one_version(peer):
    """Every line names one version, and none says where to get it, so all machines measure the same."""
    text = (FOLDER / "requirements" / f"{peer.name}.{'json' if peer.npm else 'txt'}").read_text()
    versions = (
        json.loads(text)["dependencies"]
        if peer.npm
        else dict(line.split("==") for line in text.splitlines() if not line.startswith("#"))
    )
    assert peer.distribution in versions
    assert all(re.fullmatch(r"\d+(\.\w+)+", version) for version in versions.values())
    assert "://" not in text


@pytest.mark.parametrize(("there", "missing"), [((), "node and npm"), (("node",), "npm"), (("npm",), "node")])
def test_without_node_or_npm_it_is_skipped(tmp_path: Path, monkeypatch, there, missing):
    """The reason, which is the system's line of the table, names what the machine has not."""
    for program in there:
        (tmp_path / program).touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(install.NotInstalled, match=f"^not installed: needs {missing}$"):
        install.interpreter(GRAPHILE)


def test_installing_without_node_says_so():
    """The command goes on to the next system, and leaves an environment as it is."""
    before = sorted(path.name for path in (ROOT / ".dilamme" / "peers").glob("graphile_worker/*"))
    run = peers("--install", "--only", "graphile-worker", PATH="")
    assert (run.returncode, run.stderr) == (0, "graphile-worker: not installed: needs node and npm\n")
    assert sorted(path.name for path in (ROOT / ".dilamme" / "peers").glob("graphile_worker/*")) == before


def test_an_unknown_system_is_refused():
    """The command names those it knows."""
    run = peers("--only", "graphile-worker,cron")
    assert run.returncode == 1
    assert run.stderr == f"Unknown systems: cron. Known are {', '.join(PEERS)}.\n"
