"""Dilamme and other job queues, side by side: the same work, one machine, one server, one run.

It starts a driver for each measurement in the system's own interpreter, gives it a fresh database, and ends it with
everything it started. What bare SQL does, the ceiling, is measured before and after. Progress goes to stderr.
"""

import argparse
import json
import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench import ceiling, database
from bench.peers import driver, install, ledger, process, report
from bench.peers.registry import PEERS, Peer
from bench.progress import Bar
from dilamme_project import embedded

_PLAN = ("jobs", "singles", "bulk", "samples", "seconds", "scheduled", "patience")  # options that a driver needs
_MEASUREMENTS: list[tuple[str, str, dict[str, int]]] = [  # name, what the driver does, and with which options
    ("enqueue", "enqueue", {}),
    ("drain x1", "drain", {"processes": 1}),
    ("drain x2", "drain", {"processes": 2}),
    ("latency", "latency", {}),
]
_SPARE = 120.0  # seconds that a driver gets beside what it waits for workers


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of a comparison."""
    parser.add_argument("--install", action="store_true", help="Make the systems' environments, and measure nothing.")
    parser.add_argument("--python", help="Python for these environments; needs to be 3.12 or newer for some.")
    parser.add_argument("--only", help=f"Comma-separated names, of {', '.join(PEERS)}.")
    parser.add_argument("--jobs", type=int, default=20_000, help="Jobs to drain; slow systems get fewer.")
    parser.add_argument("--singles", type=int, default=2_000, help="Jobs to enqueue one by one.")
    parser.add_argument("--bulk", type=int, default=10_000, help="Jobs to enqueue in bulk.")
    parser.add_argument("--samples", type=int, default=200, help="Single jobs to time the pick-up of.")
    parser.add_argument("--seconds", type=float, default=30.0, help="Most time for these; slow systems give fewer.")
    parser.add_argument("--scheduled", type=int, default=50, help="Jobs to schedule ahead.")
    parser.add_argument("--patience", type=float, default=180.0, help="Seconds in which a drain has to end.")
    parser.add_argument("--json", type=Path, help="Write the figures there as well.")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Install, or compare and print; returns the figures, in which a system that failed says why."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what runs is ended, and the database dropped
    peers = _chosen(options.only)
    if options.install:
        install.install(peers, options.python)
        return {}
    server = os.environ.get("DATABASE_URL") or embedded.start("bench-postgres")
    result: dict[str, Any] = {"server": database.description(server), "ceiling": {}, "systems": {}}
    bar = Bar(2 + len(peers) * len(_MEASUREMENTS))
    result["ceiling"]["before"] = _ceiling(server, bar)
    for peer in peers:
        result["systems"][peer.name] = _compare(peer, server, options, bar)
    result["ceiling"]["after"] = _ceiling(server, bar)
    bar.end()
    result["ratios"] = report.ratios(result)
    print(report.table(result))
    if options.json:
        options.json.write_text(json.dumps(result, indent=2))
    return result


def _chosen(names: str | None) -> list[Peer]:
    if names is None:
        return list(PEERS.values())
    chosen = [name.strip().replace("-", "_") for name in names.split(",")]
    if unknown := [name for name in chosen if name not in PEERS]:
        sys.exit(f"Unknown systems: {', '.join(unknown)}. Known are {', '.join(PEERS)}.")
    return [PEERS[name] for name in chosen]


def _ceiling(server: str, bar: Bar) -> dict[str, float]:
    bar.begin("the ceiling")
    with database.fresh(server) as url:
        return ceiling.measure(url)


def _compare(peer: Peer, server: str, options: argparse.Namespace, bar: Bar) -> dict[str, Any]:
    """Return all figures of one system."""
    figures: dict[str, Any] = {"title": peer.title, "how": peer.how}
    try:
        python = install.interpreter(peer)
    except install.NotInstalled as error:
        _say(f"{peer.title}: {error}")
        return figures | {"skipped": str(error)}
    plan = {name: getattr(options, name) for name in _PLAN} | {"jobs": min(options.jobs, peer.most)}
    for name, measurement, more in _MEASUREMENTS:
        bar.begin(f"{peer.title}: {name}")
        with database.fresh(server) as url:
            found = _measure(peer, python, measurement, plan | more, url)
        figures["version"] = found.pop("version", figures.get("version", "?"))
        figures[name] = found
        _say(f"{peer.title}: {name}: {_short(found)}")
    return figures


def _measure(peer: Peer, python: Path, measurement: str, plan: dict[str, Any], url: str) -> dict[str, Any]:
    """Run one driver, and return what it found, or the error that it ended with."""
    with tempfile.TemporaryDirectory(prefix="dilamme-peers-") as home:
        folder = Path(home)
        environment = os.environ | {
            "DATABASE_URL": url,
            "PYTHONPATH": str(install.ROOT),
            ledger.VARIABLE: str(folder / "ledger"),
            driver.LOG: str(folder / "log"),
        }
        command = [str(python), "-m", "bench.peers.driver", peer.name, measurement, json.dumps(plan)]
        seconds = plan["patience"] + plan["seconds"] + _SPARE
        try:
            process.run(
                command,
                seconds,
                output=folder / "out",
                errors=folder / "log",
                environment=environment,
                folder=install.ROOT,
            )
            found: dict[str, Any] = json.loads((folder / "out").read_text().splitlines()[-1])
        except process.TimeIsUp as error:
            found = {"error": str(error)}
        except (IndexError, ValueError):
            found = {"error": "the driver ended without an answer"}
        if "error" in found and (tail := _tail(folder / "log")):
            _say(tail)
    return found


def _tail(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return "\n".join(f"    {line}" for line in lines[-25:])


def _short(figures: dict[str, Any]) -> str:
    return ", ".join(
        f"{name} {value:,.1f}" if isinstance(value, float) else f"{name} {value}" for name, value in figures.items()
    )


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
