"""Owns the mark that a file is in use: an advisory lock on a small file beside it, with the holder's process id.

It never removes that small file, for another process may be about to lock it. The lock is the operating system's
and goes with the process, however that ends; what is written inside only serves to tell people who has it. Both
are O(1). Source: flock(2); the file beside, because a lock on the file itself is lost when a new one is renamed
over it.
"""

import fcntl
import os
from pathlib import Path


class Held(Exception):
    """Somebody has the lock; `holder` is his process id, or "unknown"."""

    def __init__(self, holder: str) -> None:
        super().__init__(holder)
        self.holder = holder


def beside(path: Path) -> Path:
    """Return where the lock of a file lies."""
    return path.with_name(path.name + ".lock")


def acquire(path: Path) -> int:
    """Lock a file and return a descriptor: the lock is held until it is closed.

    Raises Held at once when somebody has it, in this process or in another, and OSError.
    """
    descriptor = os.open(beside(path), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, b"%d\n" % os.getpid(), 0)
    except BlockingIOError:
        holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
        os.close(descriptor)
        raise Held(holder or "unknown") from None
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor
