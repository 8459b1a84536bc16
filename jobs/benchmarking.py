"""Owns the benchmark of the heap against the wheel on demand, for every face: one at a time in each web process.

It never measures in this process. The figures come from a child, so that no request waits for the interpreter's lock,
and the child is killed when its time is up or when nobody waits for it any more. What a child says when it fails is
logged and told to nobody.
"""

import asyncio
import contextlib
import json
import logging
import os
import sys
import threading
from pathlib import Path
from typing import Final

import scheduling
from jobs.errors import DilammeError
from scheduling.comparison import ALGORITHMS, Comparison, Figures

logger = logging.getLogger("dilamme.benchmark")

N_LIMIT: Final = 100_000
"""So that an answer takes seconds; `python -m bench structures` measures more."""

RUNS: Final = 3
TIME_LIMIT: Final = 60.0

CHOICES: Final = {"heap": ("heap",), "wheel": ("wheel",), "both": ALGORITHMS}
"""What may be asked for, and the algorithms that it means."""

_turn = threading.Lock()


class BenchmarkBusy(DilammeError):
    """Another benchmark is running in this process."""


class BenchmarkTimedOut(DilammeError):
    """The benchmark took too long and was ended."""


class BenchmarkFailed(DilammeError):
    """The benchmark failed; the log says why."""


async def run(n: int, choice: str, *, time_limit: float = TIME_LIMIT) -> Comparison:
    """Have what `choice` means measured on `n` entries, within `time_limit` seconds.

    Raises BenchmarkBusy, BenchmarkTimedOut or BenchmarkFailed, whose texts are fit for whoever asked.
    """
    if not _turn.acquire(blocking=False):  # a thread lock: under WSGI each request has an event loop of its own
        raise BenchmarkBusy("Another benchmark is running here, and two would measure each other: ask again later.")
    try:
        output = await _output_of_child(n, choice, time_limit)
        found = json.loads(output)
        figures = {name: Figures(**costs) for name, costs in found.pop("figures").items()}
        return Comparison(**found, figures=figures)
    except TimeoutError:
        raise BenchmarkTimedOut(f"{n:,} entries took more than {time_limit:g} s here: give a smaller n.") from None
    except (OSError, ValueError) as error:
        logger.error("The benchmark of %s with n=%s failed: %s", choice, n, error)  # noqa: TRY400  the text says it all
        raise BenchmarkFailed("The benchmark failed; the reason has been logged.") from None
    finally:
        _turn.release()


async def _output_of_child(n: int, choice: str, time_limit: float) -> bytes:
    """Return what the child prints. Raises TimeoutError, OSError, and ValueError with what a failed child says."""
    async with asyncio.timeout(time_limit):
        process = await asyncio.create_subprocess_exec(
            *(_interpreter(), "-P", "-m", "scheduling.comparison", str(n), *CHOICES[choice], f"--runs={RUNS}"),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": _home()},
        )
        try:
            output, complaint = await process.communicate()
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
    if process.returncode:
        raise ValueError(f"exit status {process.returncode}, {complaint.decode(errors='replace').strip()}")
    return output


def _interpreter() -> str:
    """Return the path of this Python. In a server that embeds it, `sys.executable` may be the server."""
    path = Path(sys.executable)
    if path.name.startswith(("python", "pypy")):
        return str(path)
    return str(Path(sys.exec_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}")


def _home() -> str:
    """Return the directory in which the child finds `scheduling`, wherever it is started."""
    return str(Path(scheduling.__file__).parent.parent)
