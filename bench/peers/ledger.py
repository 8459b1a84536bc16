"""The ledger: one file in which every handler leaves its job's number when it runs, whatever the system.

It is the side effect by which runs are counted, the same for all: one append of 24 bytes, which the kernel does not
mix with another process's. It knows no job queue and no database.
"""

import functools
import os
import struct
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

VARIABLE = "BENCH_LEDGER"  # names the file, to workers as well
_ENTRY = struct.Struct("=qqd")  # number of the job, id of the process, seconds on the monotonic clock


@dataclass(frozen=True, slots=True)
class Entry:
    """One run of a handler."""

    number: int
    process: int
    at: float  # seconds on the monotonic clock, which all processes of a machine share


def record(number: int) -> None:
    """Note that the handler of the job with this number runs now."""
    os.write(_file(), _ENTRY.pack(number, os.getpid(), time.monotonic()))


@functools.cache
def _file() -> int:
    return os.open(os.environ[VARIABLE], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


def count() -> int:
    """Return how many runs have been noted."""
    try:
        return os.stat(os.environ[VARIABLE]).st_size // _ENTRY.size  # noqa: PTH116  asked for every few milliseconds
    except FileNotFoundError:
        return 0


def entries() -> list[Entry]:
    """Return all runs in the order in which they were noted."""
    content = Path(os.environ[VARIABLE]).read_bytes() if count() else b""
    return [Entry(*fields) for fields in _ENTRY.iter_unpack(content)]


def mistakes(expected: Iterable[int]) -> dict[str, int]:
    """Return how many jobs never ran, and how many runs were too many."""
    runs = Counter(entry.number for entry in entries())
    wanted = set(expected)
    return {
        "lost": len(wanted - runs.keys()),
        "too many": sum(times - (number in wanted) for number, times in runs.items()),
    }
