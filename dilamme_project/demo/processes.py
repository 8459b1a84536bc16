"""The processes of the demo: daphne with the admin and the API, and a worker. What is started here is ended here."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import httpx

from jobs.errors import DilammeError

ROOT = Path(__file__).resolve().parent.parent.parent
LOGS = ROOT / ".dilamme"
_READY_WITHIN = 30.0  # seconds
_END_WITHIN = 15.0  # seconds, before a process is killed


class DemoProcesses:
    """daphne and a worker, with their output in `.dilamme/*.log`."""

    def __init__(self, port: int, environment: dict[str, str]) -> None:
        self.base_url = f"http://127.0.0.1:{port}"
        self._environment = {**os.environ, **environment}
        self._commands = {
            "web": [
                sys.executable,
                "-m",
                "daphne",
                "-b",
                "127.0.0.1",
                "-p",
                str(port),
                "dilamme_project.asgi:application",
            ],
            "worker": [sys.executable, "manage.py", "runworker", "--grace", "5", "--supervisor", str(os.getpid())],
        }
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        """Start both, and wait until the API answers and the worker has a lease."""
        LOGS.mkdir(exist_ok=True)
        for name, command in self._commands.items():
            with (LOGS / f"demo-{name}.log").open("wb") as log:
                self._running[name] = subprocess.Popen(  # noqa: S603  our own command lines
                    command, cwd=ROOT, env=self._environment, stdout=log, stderr=log, process_group=0
                )
        self._wait(lambda: self._workers() > 0)

    def stop(self) -> None:
        """End both: in order, or by force after a while."""
        for process in self._running.values():
            process.terminate()
        for process in self._running.values():
            try:
                process.wait(_END_WITHIN)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._running.clear()

    def _workers(self) -> int:
        try:
            answer = httpx.get(f"{self.base_url}/health", timeout=2)
        except httpx.TransportError:
            return 0
        return answer.json()["data"]["workers"] or 0 if answer.status_code == httpx.codes.OK else 0

    def _wait(self, ready: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _READY_WITHIN
        while not ready():
            for name, process in self._running.items():
                if process.poll() is not None:
                    raise DilammeError(
                        f"The {name} process ended with code {process.returncode}; see {LOGS}/demo-{name}.log."
                    )
            if time.monotonic() > deadline:
                raise DilammeError(f"The demo did not come up within {_READY_WITHIN:g} s; see {LOGS}/demo-*.log.")
            time.sleep(0.1)
