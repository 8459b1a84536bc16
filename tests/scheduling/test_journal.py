"""The journal on real files: durable before acknowledged, one fsync for many, one opener, snapshots."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from scheduling import (
    Journal,
    JournalClosed,
    JournalCorrupt,
    JournalLocked,
    JournalPoisoned,
    JournalWriteFailed,
    RecordTooLarge,
)
from scheduling.frames import GROUP, HEADER_SIZE, MAX_RECORD
from scheduling.logfile import read

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a journal may be."""
    return tmp_path / "journal"


@pytest.fixture
def journal(path: Path) -> Iterator[Journal]:
    """An open journal."""
    with Journal(path) as journal:
        yield journal


def child(code: str, *arguments: object) -> subprocess.Popen[str]:
    """Start a process that runs `code`."""
    command = [sys.executable, "-u", "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def in_threads(number: int, work: Callable[[int], object]) -> None:
    """Do `work` in so many threads at once, and fail with what one of them failed with."""
    failures: list[BaseException] = []

    def guarded(index: int) -> None:
        try:
            work(index)
        except BaseException as error:  # noqa: BLE001 - handed on below
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(index,)) for index in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def test_what_was_appended_is_there_when_opened_again(path: Path) -> None:
    """Records come back in their order, byte by byte, empty ones too."""
    records = [b"one", b"", bytes(range(256)), b"x" * 3_000_000]
    with Journal(path) as journal:
        for record in records[:2]:
            journal.append(record)
        journal.append_many(records[2:])
        assert list(journal.replay()) == records
    with Journal(path) as journal:
        assert journal.torn is None
        assert list(journal.replay()) == records
        journal.append(b"five")
        assert list(journal.replay()) == [*records, b"five"]


def test_nothing_appended_is_nothing_written(journal: Journal) -> None:
    """An empty list costs no fsync."""
    assert journal.append_many([]) == []
    assert journal.metrics().fsyncs == 0
    assert list(journal.replay()) == []


def test_sequence_numbers_grow_across_snapshots_and_restarts(path: Path) -> None:
    """No later record has a smaller number, whatever happens to the file in between."""
    numbers = []
    with Journal(path) as journal:
        numbers += journal.append_many([b"a" * 100, b"b", b"c"])
        numbers.append(journal.append(b"d"))
        journal.snapshot([b"all"])
        numbers.append(journal.append(b"e"))
    with Journal(path) as journal:
        numbers.append(journal.append(b"f"))
    assert numbers == sorted(set(numbers))


def test_a_sequence_number_is_the_records_place(path: Path) -> None:
    """In a journal that never had a snapshot, a number leads to the record's bytes in the file."""
    with Journal(path) as journal:
        numbers = [*journal.append_many([b"first", b"second"]), journal.append(b"third")]
    data = path.read_bytes()
    for number, record in zip(numbers, [b"first", b"second", b"third"], strict=True):
        place = HEADER_SIZE + number + 4
        assert data[place : place + len(record)] == record


def test_an_acknowledged_record_can_be_read_by_somebody_else(path: Path, journal: Journal) -> None:
    """Right after each acknowledgement an independent scan of the file finds the record."""

    def work(index: int) -> None:
        for number in range(25):
            record = b"%d/%d" % (index, number)
            journal.append(record)
            assert record in set(read(path))

    in_threads(8, work)
    assert journal.metrics().appends == 200
    assert len(list(journal.replay())) == 200


def gathered(journal: Journal, number: int) -> None:
    """Wait until the group that gathers has so many records."""
    while journal._group._gathering is None or journal._group._gathering.count < number:
        os.sched_yield()


def test_who_waits_together_shares_one_fsync(path: Path, journal: Journal) -> None:
    """Twenty threads that append while a sync is under way become durable with the next one, all of them."""
    numbers: dict[int, int] = {}
    with journal._group.commits:
        threads = [
            threading.Thread(target=lambda index=index: numbers.update({index: journal.append(b"%d" % index)}))
            for index in range(20)
        ]
        for thread in threads:
            thread.start()
        gathered(journal, 20)
        assert numbers == {}
        assert list(read(path)) == []
    for thread in threads:
        thread.join()
    metrics = journal.metrics()
    assert (metrics.appends, metrics.fsyncs, metrics.records_per_fsync) == (20, 1, 20.0)
    in_order = sorted(numbers, key=lambda index: numbers[index])
    assert list(journal.replay()) == [b"%d" % index for index in in_order]


def test_a_group_is_not_made_larger_than_its_limit(journal: Journal) -> None:
    """Who does not fit into the group that gathers opens the next one."""
    threads = [threading.Thread(target=journal.append, args=(bytes(GROUP // 2),)) for _ in range(4)]
    with journal._group.commits:
        for thread in threads:
            thread.start()
    for thread in threads:
        thread.join()
    assert journal.metrics().fsyncs == 4
    assert len(list(journal.replay())) == 4


def test_an_interrupted_leader_does_not_strand_its_followers(journal: Journal) -> None:
    """Where a signal takes the leader away before it wrote, one of those who wait leads."""
    acknowledged, interrupted = [], threading.Event()
    raised: list[int] = []

    def raise_once(number: int, _: object) -> None:
        if not raised:
            raised.append(number)
            raise KeyboardInterrupt

    def follow() -> None:
        gathered(journal, 1)
        acknowledged.append(journal.append(b"follower"))

    def interrupt() -> None:
        with journal._group.commits:
            started.set()
            gathered(journal, 2)
            # A signal that comes in the moment before a thread blocks does not end its wait; the next one does.
            while not interrupted.wait(0.05):
                signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, raise_once)
    started = threading.Event()
    threads = [threading.Thread(target=follow), threading.Thread(target=interrupt)]
    threads[1].start()
    started.wait()
    threads[0].start()
    with pytest.raises(KeyboardInterrupt):
        journal.append(b"leader")
    interrupted.set()
    for thread in threads:
        thread.join()
    signal.signal(signal.SIGUSR1, before)
    assert len(acknowledged) == 1
    assert b"follower" in set(journal.replay())


def test_a_record_too_large_is_refused_with_the_limits(journal: Journal) -> None:
    """Neither one huge record nor too much at once is taken, and the text says how much may be."""
    with pytest.raises(RecordTooLarge, match=f"has {MAX_RECORD + 1} bytes .* limits are {MAX_RECORD} and"):
        journal.append(bytes(MAX_RECORD + 1))
    with pytest.raises(RecordTooLarge, match="Append fewer"):
        journal.append_many([bytes(MAX_RECORD)] * 4)
    assert journal.append(bytes(MAX_RECORD)) == 12
    assert [len(record) for record in journal.replay()] == [MAX_RECORD]


def test_a_second_opener_is_told_path_and_process(path: Path, journal: Journal) -> None:
    """In this process and in another, the file is refused to everybody but the first, under any of its names."""
    other = path.with_name("link")
    other.symlink_to(path)
    text = f"Journal {path} is open already, in process {os.getpid()}"
    for name in (path, other):
        with pytest.raises(JournalLocked, match=text):
            Journal(name)
    code = "import sys; from scheduling import Journal\ntry: Journal(sys.argv[1])\nexcept Exception as e: print(e)"
    assert text in child(code, path).communicate()[0]
    journal.append(b"still mine")


def test_a_snapshot_does_not_lose_the_lock(path: Path, journal: Journal) -> None:
    """The lock holds although the file that was locked first has been replaced."""
    journal.append(b"a")
    journal.snapshot([b"a"])
    with pytest.raises(JournalLocked):
        Journal(path)


def test_a_lock_goes_with_its_process(path: Path) -> None:
    """After kill -9 of its holder the journal opens at once."""
    process = child(
        "import sys; from scheduling import Journal\n"
        "journal = Journal(sys.argv[1]); journal.append(b'a'); print(1); sys.stdin.read()",
        path,
    )
    assert process.stdout.readline() == "1\n"
    with pytest.raises(JournalLocked, match=f"in process {process.pid}:"):
        Journal(path)
    process.kill()
    process.communicate()
    with Journal(path) as journal:
        assert list(journal.replay()) == [b"a"]


def test_a_closed_journal_says_so(path: Path) -> None:
    """After close nothing is taken, another may open the file, and closing again does no harm."""
    journal = Journal(path)
    journal.close()
    journal.close()
    for call in (lambda: journal.append(b"a"), lambda: list(journal.replay()), lambda: journal.snapshot([])):
        with pytest.raises(JournalClosed, match="is closed: open it again"):
            call()
    Journal(path).close()


def test_a_fork_may_not_write(path: Path) -> None:
    """A child process that was forked with an open journal is refused, and the parent goes on."""
    code = """
import os, sys
from scheduling import Journal, JournalClosed
journal = Journal(sys.argv[1])
if not os.fork():
    try: journal.append(b"child")
    except JournalClosed as error: print(error)
    os._exit(0)
os.wait()
journal.append(b"parent")
"""
    said = child(code, path).communicate()[0]
    assert "not to its fork" in said
    assert list(read(path)) == [b"parent"]


def test_a_snapshot_replaces_everything_before_it(path: Path, journal: Journal) -> None:
    """Afterwards the journal holds the snapshot, then what came later, and is smaller."""
    for number in range(100):
        journal.append(b"%d" % number)
    before = journal.metrics().size
    journal.snapshot([b"sum", b"of", b"all"])
    after = journal.metrics()
    assert after.size == after.snapshot_size == path.stat().st_size < before
    journal.append(b"later")
    assert list(journal.replay()) == [b"sum", b"of", b"all", b"later"]
    journal.close()
    with Journal(path) as again:
        assert list(again.replay()) == [b"sum", b"of", b"all", b"later"]
        assert again.metrics().snapshot_size == after.size
    assert sorted(file.name for file in path.parent.iterdir()) == ["journal", "journal.lock"]


def test_a_snapshot_of_many_records_is_one_file_of_several_frames(journal: Journal) -> None:
    """More than fits into a group is kept as well, in its order."""
    records = [b"%d" % number + bytes(10_000) for number in range(300)]
    journal.snapshot(iter(records))
    assert list(journal.replay()) == records


def test_a_snapshot_that_fails_leaves_everything_as_it_was(path: Path, journal: Journal) -> None:
    """If making the records fails, no trace of it is left and the old content goes on."""

    def records() -> Iterator[bytes]:
        yield b"half"
        raise ZeroDivisionError

    journal.append(b"old")
    with pytest.raises(ZeroDivisionError):
        journal.snapshot(records())
    journal.append(b"new")
    assert list(journal.replay()) == [b"old", b"new"]
    assert not path.with_name("journal.tmp").exists()


def test_an_unfinished_snapshot_is_cleaned_up_when_opened(path: Path) -> None:
    """What a crash left of a snapshot is removed, and what it was to replace is there."""
    with Journal(path) as journal:
        journal.append(b"old")
    leftover = path.with_name("journal.tmp")
    leftover.write_bytes(b"half a snapshot")
    with Journal(path) as journal:
        assert list(journal.replay()) == [b"old"]
    assert not leftover.exists()


def test_only_the_owner_may_read_it(path: Path, journal: Journal) -> None:
    """Payloads can be confidential, so file and snapshot are private."""
    assert path.stat().st_mode & 0o777 == 0o600
    journal.snapshot([b"a"])
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("content", [b"", b"\n", b"something else entirely, and longer than a header would be"])
def test_a_file_of_another_kind_is_refused(path: Path, content: bytes) -> None:
    """What is no journal, an empty file included, is neither used nor touched."""
    path.write_bytes(content)
    with pytest.raises(JournalCorrupt, match=r"is no journal, or a damaged one: .* Restore a backup"):
        Journal(path)
    assert path.read_bytes() == content


FULL = """
import os, resource, sys
from scheduling import Journal, JournalWriteFailed
journal = Journal(sys.argv[1])
journal.append(b"before")
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, hard))  # from here on the disk is full at 5000 bytes
acknowledged, refused = 0, 0
for number in range(100):
    try: journal.append(b"%d" % number + bytes(300))
    except JournalWriteFailed as error: text, refused = str(error), refused + 1
    else: acknowledged += 1
    assert os.path.getsize(sys.argv[1]) == journal.metrics().size <= 5000
try: journal.snapshot([bytes(4000), bytes(4000)])
except JournalWriteFailed as error: assert "The old content is kept" in str(error), error
else: raise SystemExit("no room, but a snapshot")
assert not os.path.exists(sys.argv[1] + ".tmp")
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
journal.append(b"after")
print(acknowledged, refused, text)
"""


def test_a_full_disk_refuses_before_the_acknowledgement(path: Path) -> None:
    """A write that finds no room takes nothing, half of nothing neither, and later ones find the journal sound."""
    process = child(FULL, path)
    said = process.communicate()[0]
    assert process.returncode == 0
    acknowledged, refused, text = said.split(" ", 2)
    assert int(acknowledged) > 5
    assert int(acknowledged) + int(refused) == 100
    assert "File too large" in text
    assert "make room and append again" in text
    with Journal(path) as journal:
        assert journal.torn is None
        records = [b"%d" % number + bytes(300) for number in range(int(acknowledged))]
        assert list(journal.replay()) == [b"before", *records, b"after"]


def put_device_in_place(journal: Journal, device: str) -> None:
    """Let the journal's descriptor lead to a device that fails in its own, real way."""
    descriptor = os.open(device, os.O_RDWR)
    os.dup2(descriptor, journal._file._descriptor, inheritable=False)
    os.close(descriptor)


def test_after_a_failed_fsync_nothing_is_taken_until_reopened(path: Path) -> None:
    """The append raises, so does everything after it, and a new opening finds what was acknowledged before."""
    with Journal(path) as journal:
        journal.append(b"before")
        put_device_in_place(journal, "/dev/null")  # takes every byte, and cannot sync
        for _ in range(2):
            with pytest.raises(JournalPoisoned, match=r"cannot tell what is on disk since this failed: .*Invalid"):
                journal.append(b"lost")
        with pytest.raises(JournalPoisoned, match="Look at the disk, then open it again"):
            journal.snapshot([])
        assert journal.metrics().appends == journal.metrics().fsyncs == 1
    with Journal(path) as journal:
        assert list(journal.replay()) == [b"before"]
        journal.append(b"after")


def test_a_refused_write_that_cannot_be_taken_back_poisons(path: Path) -> None:
    """If half a frame may have stayed behind the end, nothing is written after it."""
    with Journal(path) as journal:
        put_device_in_place(journal, "/dev/full")  # refuses every write, and cannot be truncated
        for _ in range(2):
            with pytest.raises(JournalPoisoned):
                journal.append(b"lost")
    with Journal(path) as journal:
        assert list(journal.replay()) == []


def test_everybody_in_a_group_hears_of_its_failure(journal: Journal) -> None:
    """The error goes to the leader and to all who followed it."""
    errors = []

    def work() -> None:
        with pytest.raises((JournalPoisoned, JournalWriteFailed)) as caught:
            journal.append(b"lost")
        errors.append(caught.value)

    put_device_in_place(journal, "/dev/full")
    threads = [threading.Thread(target=work) for _ in range(5)]
    with journal._group.commits:
        for thread in threads:
            thread.start()
        gathered(journal, 5)
    for thread in threads:
        thread.join()
    assert len(errors) == 5


def test_a_snapshot_whose_name_cannot_be_given_poisons(path: Path, journal: Journal) -> None:
    """When replacing the file fails half way, nobody goes on with a file that may have no name."""
    journal.append(b"old")
    path.unlink()
    path.mkdir()
    with pytest.raises(JournalPoisoned, match="was half replaced"):
        journal.snapshot([b"new"])
    with pytest.raises(JournalPoisoned):
        journal.append(b"lost")


SNAPSHOTS = """
import sys
from scheduling import Journal
journal = Journal(sys.argv[1])
(number,) = {int(record.split()[0]) for record in journal.replay()} or {0}
print(number)
while True:
    number += 1
    journal.snapshot(b"%d %d" % (number, part) + bytes(2000) for part in range(20))
    print(number)
"""


@pytest.mark.parametrize("delay", range(8))
def test_a_crash_during_snapshots_leaves_one_of_them_whole(path: Path, delay: int) -> None:
    """Killed at any moment, the file holds the last acknowledged snapshot or the one after it, all of it."""
    for _ in range(2):
        process = child(SNAPSHOTS, path)
        said = "".join(process.stdout.readline() for _ in range(1 + 3 * delay))
        process.kill()
        said += process.stdout.read()  # and not communicate, which passes over what readline has read ahead
        process.communicate()
        with Journal(path) as journal:
            assert journal.torn is None
            records = list(journal.replay())
        numbers = {int(record.split()[0]) for record in records}
        assert len(numbers) <= 1
        assert len(records) in ({0, 20} if delay == 0 else {20})
        acknowledged = int(said.split("\n")[-2])
        assert (numbers or {0}) <= {acknowledged, acknowledged + 1}
        assert not path.with_name("journal.tmp").exists()
