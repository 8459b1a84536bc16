"""A web server for tests: daphne in a process of its own, on this test's database."""

import socket
import subprocess
import sys
from pathlib import Path

from tests.support import ROOT, process_environment, wait_until


class WebServer:
    """A daphne on this test's database, on the loopback."""

    def __init__(self, log: Path, application: str) -> None:
        self.log = log
        self.application = application
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.start()

    @property
    def address(self) -> str:
        """Return where it is."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        command = [sys.executable, "-m", "daphne", "-b", "127.0.0.1", "-p", str(self.port)]
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                [*command, self.application],
                cwd=ROOT,
                env=process_environment(SECRET_KEY="the same for both lives of the server"),
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        wait_until(self._answers, within=30, what=f"daphne listens on {self.port}, see {self.log}")

    def stop(self) -> None:
        """End it, and whatever it has open."""
        self.process.terminate()
        self.process.wait(timeout=30)

    def _answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port)).close()
        except OSError:
            return False
        return True
