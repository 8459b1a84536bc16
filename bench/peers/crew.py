"""The worker processes of one measurement: started together, watched through the ledger, ended one by one."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.peers import ledger

_GRACE = 20.0  # seconds that a worker may take to leave
_GLANCE = 0.005  # seconds between looks at the ledger's size


class Unfinished(Exception):
    """Work that did not happen in the time it was given."""


class Crew:
    """Worker processes. Those they start themselves belong to the driver's process group, which is ended as a whole."""

    def __init__(self, commands: Sequence[Sequence[str]], log: Path) -> None:
        with log.open("ab") as output:
            self._processes = [
                subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
                for command in commands
            ]

    def stop(self) -> None:
        """Ask every worker to leave, and end those that do not."""
        for process in self._processes:
            process.terminate()
        deadline = time.monotonic() + _GRACE
        for process in self._processes:
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                print("A worker did not leave when asked to, and is ended.", file=sys.stderr)
                process.kill()
                process.wait()

    def check(self) -> None:
        """Raise if a worker ended by itself."""
        for process in self._processes:
            if process.poll() is not None:
                raise Unfinished(f"a worker ended by itself with the code {process.returncode}")

    def wait_for_runs(self, count: int, seconds: float) -> None:
        """Wait until the ledger has this many entries."""
        self.wait_until(
            lambda: ledger.count() >= count, seconds, _GLANCE, lambda: f"{ledger.count():,} of {count:,} ran"
        )

    def wait_until(
        self, condition: Callable[[], bool], seconds: float, pause: float, so_far: Callable[[], str]
    ) -> None:
        """Wait until the condition holds; raise with `so_far()` if it does not in time, or a worker is gone."""
        deadline = time.monotonic() + seconds
        while not condition():
            self.check()
            if time.monotonic() > deadline:
                raise Unfinished(f"after {seconds:.0f} s only {so_far()}")
            time.sleep(pause)


@contextmanager
def working(commands: Sequence[Sequence[str]], log: Path) -> Iterator[Crew]:
    """Have workers work while the block runs."""
    crew = Crew(commands, log)
    try:
        yield crew
    finally:
        crew.stop()
