"""The environments of the other systems, so that their dependencies never meet ours.

Each lies in `.dilamme/peers/<name>`, and says in a file which requirements it was made from: with other requirements
it counts as not installed. It is a virtual environment, or, for a system of npm's, a folder with its packages, one of
which is Node.js itself.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from importlib import metadata
from pathlib import Path

from bench.peers import process
from bench.peers.registry import Peer

ROOT = Path(__file__).resolve().parent.parent.parent
_HOME = ROOT / ".dilamme" / "peers"
_REQUIREMENTS = Path(__file__).resolve().parent / "requirements"
_MADE_FROM = "requirements.txt"  # in an environment: what it was made from
_PATIENCE = 600.0  # seconds for one environment


class NotInstalled(Exception):
    """Why a system cannot be measured here."""


def interpreter(peer: Peer) -> Path:
    """Return the Python that measures a system; raises `NotInstalled`."""
    _check_programs(peer)
    if peer.ours:
        return Path(sys.executable)
    marker = _HOME / peer.name / _MADE_FROM
    if not marker.exists() or marker.read_text() != _requirements(peer).read_text():
        raise NotInstalled("not installed")
    return Path(sys.executable) if peer.npm else _HOME / peer.name / "bin" / "python"


def node(name: str) -> Path:
    """Return the Node.js that runs a system of npm's."""
    return _HOME / name / "node_modules" / ".bin" / "node"


def version(peer: Peer) -> str:
    """Return the installed version of a system, asked in the interpreter that measures it."""
    if peer.npm:
        package = _HOME / peer.name / "node_modules" / peer.distribution / "package.json"
        return str(json.loads(package.read_text())["version"])
    try:
        return metadata.version(peer.distribution)
    except metadata.PackageNotFoundError:
        return "this checkout"


def install(peers: Iterable[Peer], wanted: str | None) -> None:
    """Make the environments anew; `wanted` is the Python to use, where it is not too old for the system."""
    for peer in peers:
        if peer.ours:
            continue
        try:
            _install(peer, _by_npm(peer) if peer.npm else _by_pip(peer, _python(peer, wanted)))
        except (NotInstalled, process.TimeIsUp) as error:
            print(f"{peer.title}: {error}", file=sys.stderr)


def _install(peer: Peer, commands: Iterable[Sequence[str]]) -> None:
    home = _HOME / peer.name
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    if peer.npm:
        shutil.copy(_requirements(peer), home / "package.json")
    with tempfile.TemporaryDirectory(prefix="dilamme-peers-") as folder:
        for command in commands:
            _do(command, Path(folder))
    (home / _MADE_FROM).write_text(_requirements(peer).read_text())
    print(f"{peer.title}: installed", file=sys.stderr)


def _by_pip(peer: Peer, python: str) -> list[list[str]]:
    home = str(_HOME / peer.name)
    pip = [f"{home}/bin/python", "-m", "pip", "install", "--disable-pip-version-check", "--progress-bar=off"]
    return [[python, "-m", "venv", home], [*pip, "--requirement", str(_requirements(peer))]]


def _by_npm(peer: Peer) -> list[list[str]]:
    """Return the commands; the last proves that Node.js is there, which a package's script brings, or npm left out."""
    _check_programs(peer)
    npm = ["npm", "install", "--no-package-lock", "--no-audit", "--no-fund"]
    return [[*npm, "--prefix", str(_HOME / peer.name)], [str(node(peer.name)), "--version"]]


def _check_programs(peer: Peer) -> None:
    if missing := [program for program in peer.programs if not shutil.which(program)]:
        raise NotInstalled(f"not installed: needs {' and '.join(missing)}")


def _do(command: Sequence[str], folder: Path) -> None:
    errors = folder / "errors"
    code = process.run(command, _PATIENCE, output=folder / "out", errors=errors, environment=os.environ, folder=ROOT)
    if code:
        print(errors.read_text(errors="replace"), file=sys.stderr)
        raise NotInstalled("could not be installed")


def _requirements(peer: Peer) -> Path:
    return _REQUIREMENTS / f"{peer.name}.{'json' if peer.npm else 'txt'}"


def _python(peer: Peer, wanted: str | None) -> str:
    """Return the first Python that is new enough: the one asked for, ours, then what this machine has."""
    for candidate in filter(None, (wanted, sys.executable, *_others())):
        if _version_of(candidate) >= peer.python:
            return candidate
    needed = ".".join(map(str, peer.python))
    raise NotInstalled(f"needs Python {needed} or newer: name one with --python")


def _others() -> Iterator[str]:
    """Return Pythons of this machine, the oldest minor version first."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for minor in range(11, 20):
        if found := shutil.which(f"python3.{minor}"):
            yield found
        yield from map(str, sorted(pyenv.glob(f"3.{minor}.*/bin/python")))


def _version_of(python: str) -> tuple[int, int]:
    """Return a Python's version, (0, 0) if it does not run: a shim may stand for one that is not there."""
    try:
        answer = subprocess.run([python, "--version"], capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return 0, 0
    found = re.match(r"Python (\d+)\.(\d+)", answer.stdout)
    return (int(found[1]), int(found[2])) if found and not answer.returncode else (0, 0)
