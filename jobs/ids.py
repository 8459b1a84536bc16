"""Time-ordered ids, made by the caller so that an enqueue can be repeated without doubling a job.

UUID version 7 (RFC 9562, section 5.7 with the counter of method 1 in section 6.2): 48 bits of milliseconds, a 12-bit
counter, 62 random bits. Within one process every id is greater than the last, whatever the wall clock does. The time
in it orders ids and decides nothing else: due times and leases are the database's.
"""

import os
import threading
import time
import uuid

_COUNTER_BITS = 12
_VERSION_AND_VARIANT = (7 << 76) | (2 << 62)
_RANDOM_MASK = (1 << 62) - 1

_lock = threading.Lock()
_last = 0  # milliseconds << 12 | counter: one number, so that a full counter carries into the next millisecond


def uuid7s(count: int) -> list[uuid.UUID]:
    """Return `count` new ids, ascending."""
    global _last  # noqa: PLW0603  one monotonic counter per process is the point
    with _lock:
        first = max(_last + 1, (time.time_ns() // 1_000_000) << _COUNTER_BITS)
        _last = first + count - 1
    noise = os.urandom(8 * count)
    return [uuid.UUID(int=_layout(first + i, int.from_bytes(noise[8 * i : 8 * i + 8], "big"))) for i in range(count)]


def uuid7() -> uuid.UUID:
    """Return one new id, greater than every id this process made before."""
    return uuid7s(1)[0]


def _layout(moment: int, noise: int) -> int:
    milliseconds, counter = moment >> _COUNTER_BITS, moment & ((1 << _COUNTER_BITS) - 1)
    return (milliseconds << 80) | (counter << 64) | _VERSION_AND_VARIANT | (noise & _RANDOM_MASK)


def _renew_lock_after_fork() -> None:
    """Give a forked child a lock of its own; it shares the counter, and the 62 random bits keep the ids apart."""
    global _lock  # noqa: PLW0603  the parent may have held it while forking
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_renew_lock_after_fork)
