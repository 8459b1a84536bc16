"""Commands that are ended with everything they started, when they end and when their time is up.

A command gets a process group of its own. The group is killed while the command's own id is still reserved for it, so
what is killed is never a stranger that got the same number.
"""

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

_GLANCE = 0.05  # seconds between looks at whether the command has ended


class TimeIsUp(Exception):
    """A command that did not end in time."""


def run(
    command: Sequence[str],
    seconds: float,
    *,
    output: Path,
    errors: Path,
    environment: Mapping[str, str],
    folder: Path,
) -> int:
    """Run a command and return its exit code; raises `TimeIsUp`. Nothing of its group is left in either case."""
    with output.open("wb") as out, errors.open("ab") as err:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
            env=environment, cwd=folder, start_new_session=True,
        )  # fmt: skip
    deadline = time.monotonic() + seconds
    try:
        while not _has_ended(process):
            if time.monotonic() > deadline:
                raise TimeIsUp(f"{Path(command[0]).name} did not end in {seconds:.0f} s")
            time.sleep(_GLANCE)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return process.returncode


def _has_ended(process: "subprocess.Popen[bytes]") -> bool:
    """Look without taking the exit code, which would give the process's id back to the system."""
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
