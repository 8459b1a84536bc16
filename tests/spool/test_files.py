"""The files of the spool: what was put in is there until it is taken out, whatever happens to the process."""

import os
import signal
import subprocess
import sys
import threading
import uuid
from pathlib import Path

import pytest

from jobs.errors import SpoolFailed, SpoolFull
from jobs.spool.files import SpoolFile
from scheduling import JournalLocked
from tests.support import ROOT

KEEPER = """
import sys, uuid
from jobs.spool.files import SpoolFile
file = SpoolFile.make(sys.argv[1], "things", 10**9)
while True:
    key = uuid.uuid4()
    file.put({key: key.bytes * 5})
    print(key, flush=True)
    if key.int % 3 == 0:
        file.remove([key])
        print("-", key, flush=True)
"""


def make(directory: Path, limit: int = 10_000) -> SpoolFile:
    """Make a file of `things`."""
    return SpoolFile.make(str(directory), "things", limit)


def some(count: int) -> dict[uuid.UUID, bytes]:
    """Return records."""
    return {uuid.uuid4(): b"%d" % number for number in range(count)}


def test_records_come_back_in_their_order_after_a_restart(tmp_path: Path):
    """What was removed is gone, the rest is there in the order it was put in."""
    file, records = make(tmp_path), some(10)
    for key, record in records.items():
        assert file.put({key: record})
    keys = list(records)
    file.remove(keys[:3])
    file.remove([keys[5]])
    file.abandon()
    (adopted,) = SpoolFile.orphans(str(tmp_path), "things")
    assert list(adopted.first(100, 10_000)) == keys[3:5] + keys[6:]
    assert adopted.size == 6
    adopted.abandon()


def test_a_file_in_use_is_nobodys_orphan(tmp_path: Path):
    """Neither in the same process nor in another."""
    file = make(tmp_path)
    file.put(some(1))
    assert list(SpoolFile.orphans(str(tmp_path), "things")) == []
    with pytest.raises(JournalLocked):
        SpoolFile(file.path, 10)
    file.abandon()
    assert [orphan.abandon() for orphan in SpoolFile.orphans(str(tmp_path), "things")] == [None]


def test_kinds_do_not_mix(tmp_path: Path):
    """Outcomes are not adopted as jobs."""
    file = make(tmp_path)
    file.put(some(1))
    file.abandon()
    assert list(SpoolFile.orphans(str(tmp_path), "others")) == []


def test_the_limit_counts_what_is_kept(tmp_path: Path):
    """Room that was given back can be used again, however much has gone through."""
    file = make(tmp_path, limit=100)
    for _ in range(50):
        key = uuid.uuid4()
        file.put({key: b"x" * 90})
        with pytest.raises(SpoolFull):
            file.put({uuid.uuid4(): b"x" * 11})
        file.remove([key])
    assert file.retire()
    assert list(tmp_path.iterdir()) == []


def test_a_file_with_something_in_it_is_not_retired(tmp_path: Path):
    """Only an empty one goes, and then takes nothing more."""
    file, records = make(tmp_path), some(1)
    file.put(records)
    assert not file.retire()
    file.remove(list(records))
    assert file.retire()
    assert not file.put(some(1))


def test_the_file_stays_small_however_much_goes_through(tmp_path: Path):
    """It is written anew when it has grown a mebibyte beyond twice what it keeps."""
    file = make(tmp_path, limit=10_000_000)
    kept = some(3)
    file.put(kept)
    largest = 0
    for _ in range(100):
        records = {uuid.uuid4(): b"x" * 50_000}
        file.put(records)
        file.remove(list(records))
        largest = max(largest, file.path.stat().st_size)
    assert largest < 1_300_000
    file.abandon()
    (adopted,) = SpoolFile.orphans(str(tmp_path), "things")
    assert list(adopted.first(10, 10_000)) == list(kept)
    adopted.abandon()


def test_first_is_bounded_by_count_and_by_size(tmp_path: Path):
    """And yields one at least, however large."""
    file = make(tmp_path)
    records = {uuid.uuid4(): b"x" * size for size in (500, 10, 10)}
    file.put(records)
    assert len(file.first(2, 10_000)) == 2
    assert [len(file.first(10, size)) for size in (1, 509, 510, 519, 520)] == [1, 1, 2, 2, 3]
    file.abandon()


def test_many_threads_put_and_one_removes(tmp_path: Path):
    """Nothing is lost or doubled, in memory or on disk."""
    file = make(tmp_path, limit=10_000_000)
    seen: list[uuid.UUID] = []
    put: list[uuid.UUID] = []
    done = threading.Event()

    def work() -> None:
        for _ in range(100):
            records = some(2)
            file.put(records)
            put.extend(records)

    def take() -> None:
        while not done.is_set():
            batch = list(file.first(7, 10_000))
            file.remove(batch)
            seen.extend(batch)

    workers = [threading.Thread(target=work) for _ in range(4)]
    taker = threading.Thread(target=take)
    for thread in (*workers, taker):
        thread.start()
    for thread in workers:
        thread.join()
    done.set()
    taker.join()
    file.abandon()
    (adopted,) = SpoolFile.orphans(str(tmp_path), "things")
    rest = list(adopted.first(10_000, 10_000_000))
    adopted.abandon()
    assert len(seen) + len(rest) == len(put) == 800
    assert {*seen, *rest} == set(put)


def test_what_was_acknowledged_outlives_kill_9(tmp_path: Path):
    """A process that puts and removes is killed in the midst of it, ten times."""
    kept: set[str] = set()
    for number in range(10):
        process = subprocess.Popen([sys.executable, "-c", KEEPER, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE)
        assert process.stdout is not None
        lines = [process.stdout.readline().decode() for _ in range(5 + 3 * number)]
        process.send_signal(signal.SIGKILL)
        lines += process.stdout.read().decode().splitlines(keepends=True)
        process.wait(10)
        process.stdout.close()
        whole = [line.strip() for line in lines if line.endswith("\n")]
        gone = {line[2:] for line in whole if line.startswith("-")}
        kept |= {line for line in whole if not line.startswith("-")} - gone
    found: set[str] = set()
    for orphan in SpoolFile.orphans(str(tmp_path), "things"):
        found |= {str(key) for key in orphan.first(10_000, 10**9)}
        orphan.abandon()
    # The last entry of each life may have been removed, or put, without a word reaching us.
    assert len(kept - found) <= 10
    assert all(uuid.UUID(key).int % 3 == 0 for key in kept - found)
    assert len(found - kept) <= 10


def test_a_damaged_file_is_named_and_left_alone(tmp_path: Path, caplog):
    """It is neither read nor removed; the log says how to repair it."""
    file = make(tmp_path)
    for record in range(3):
        file.put({uuid.uuid4(): b"%d" % record})
    file.abandon()
    data = bytearray(file.path.read_bytes())
    data[60] ^= 1
    file.path.write_bytes(data)
    assert list(SpoolFile.orphans(str(tmp_path), "things")) == []
    assert "python -m scheduling repair" in caplog.text
    assert file.path.read_bytes() == data


def test_a_disk_that_refuses_is_reported_before_the_acknowledgement(tmp_path: Path):
    """Beyond the largest file this process may write nothing is taken, and what was taken stays."""
    import resource

    file, records = make(tmp_path), some(1)
    file.put(records)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (file.path.stat().st_size, limits[1]))
        with pytest.raises(SpoolFailed, match="cannot be written"):
            file.put(some(1))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert file.size == 1
    file.abandon()
    (adopted,) = SpoolFile.orphans(str(tmp_path), "things")
    assert adopted.first(10, 100) == records
    adopted.abandon()


def test_only_the_owner_can_read_it(tmp_path: Path):
    """Payloads may be confidential."""
    file = make(tmp_path / "new")
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700
    assert file.path.stat().st_mode & 0o777 == 0o600
    assert file.path.stat().st_uid == os.getuid()
    file.abandon()
