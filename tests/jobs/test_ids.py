"""Ids: UUIDs of version 7 that ascend within a process, whoever asks for them."""

import itertools
import os
import subprocess
import sys
import threading
import time
import uuid

from jobs.ids import uuid7, uuid7s
from tests.support import ROOT

ROUNDS = 500


def milliseconds(id_: uuid.UUID) -> int:
    """Return the time in an id."""
    return id_.int >> 80


def test_version_and_variant_are_those_of_the_standard() -> None:
    """RFC 9562: version 7 in bits 48 to 51, variant 10 in bits 64 and 65."""
    for id_ in uuid7s(5000):
        assert (id_.version, id_.variant) == (7, uuid.RFC_4122)
        assert (id_.int >> 76 & 0xF, id_.int >> 62 & 0b11) == (7, 0b10)


def test_the_time_is_that_of_the_host() -> None:
    """Other tools read when a job was made from its id."""
    before = time.time_ns() // 1_000_000
    id_ = uuid7()
    # In a process that has just made many at once the counter is ahead of the clock.
    assert before <= milliseconds(id_) <= time.time_ns() // 1_000_000 + 1000


def test_a_bulk_ascends_across_the_full_counter() -> None:
    """More than the 4,096 ids that fit into a millisecond still ascend, and carry into the next one."""
    ids = uuid7s(10_000)
    assert all(first < second for first, second in itertools.pairwise(ids))
    assert milliseconds(ids[-1]) - milliseconds(ids[0]) in (2, 3)


def test_single_ids_continue_where_a_bulk_has_ended() -> None:
    """A bulk that ran ahead of the clock does not make later ids sort before it."""
    last = uuid7s(20_000)[-1]
    assert last < uuid7() < uuid7()


def test_text_sorts_like_the_number() -> None:
    """What sorts ids as text, or as bytes, gets the order in which they were made."""
    ids = uuid7s(5000)
    assert sorted(ids, key=str) == sorted(ids, key=lambda id_: id_.bytes) == ids


def test_threads_share_one_ascending_sequence(monkeypatch) -> None:
    """Threads that ask at the same time get ascending ids, and no place in the sequence is given out twice."""
    clock = time.time_ns
    # Reading randomness lets other threads run, here in the middle of making an id.
    monkeypatch.setattr(time, "time_ns", lambda: len(os.urandom(1)) and clock())
    made: list[list[uuid.UUID]] = []
    barrier = threading.Barrier(8)

    def make() -> None:
        barrier.wait()
        made.append([uuid7() for _ in range(ROUNDS)])

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(ids == sorted(ids) for ids in made)
    assert len({id_.int >> 64 for ids in made for id_ in ids}) == 8 * ROUNDS


def test_a_clock_set_back_does_not_matter(monkeypatch) -> None:
    """An hour in the past, ids still follow those made before."""
    last = uuid7()
    back = time.time_ns() - 3_600_000_000_000
    monkeypatch.setattr(time, "time_ns", lambda: back)
    assert last < uuid7() < uuid7()


FORK = """
import os
import signal
from jobs import ids

with ids._lock:  # as if another thread were making an id at this moment
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        print(*ids.uuid7s(100), flush=True)
        os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print(*ids.uuid7s(100))
"""


def test_a_forked_child_makes_other_ids_and_does_not_hang() -> None:
    """A child forked while the lock was held gets a lock of its own, and random bits of its own."""
    printed = subprocess.run([sys.executable, "-c", FORK], cwd=ROOT, capture_output=True, timeout=30, check=True).stdout
    assert len(set(printed.split())) == 200


def test_no_ids_are_an_empty_list() -> None:
    """Asking for none is fine, and spends nothing."""
    assert uuid7s(0) == []
