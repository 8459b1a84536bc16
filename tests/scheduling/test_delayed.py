"""The delayed scheduler: never early, kept until done, tried again later each time, dead in the end."""

import math
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from scheduling import Backoff, DelayedScheduler, Entry, Journal, JournalClosed, JournalError, JournalPoisoned
from scheduling.entries import LONGEST_ERROR
from scheduling.gate import Gate
from scheduling.logfile import read

ROOT = Path(__file__).resolve().parent.parent.parent

Open = Callable[..., DelayedScheduler]


@pytest.fixture
def reopen(tmp_path: Path) -> Iterator[Open]:
    """Return a function that opens the one scheduler of a test, anew if it is open, in ticks of a second."""
    opened: list[DelayedScheduler] = []

    def again(**options: Any) -> DelayedScheduler:
        for scheduler in opened:
            scheduler.close()
        values = {"tick": 1.0, "chance": lambda: 0.5} | options
        opened.append(DelayedScheduler(tmp_path / "journal", **values))
        return opened[-1]

    yield again
    for scheduler in opened:
        scheduler.close()


@pytest.fixture
def scheduler(reopen: Open) -> DelayedScheduler:
    """An empty scheduler in ticks of a second."""
    return reopen()


def payloads(entries: list[Entry]) -> list[bytes]:
    """Return what entries carry."""
    return [entry.payload for entry in entries]


@pytest.mark.parametrize("tick", [0.001, 0.01, 0.25, 1.0, 60.0])
def test_100_ticks_ahead_is_not_99(reopen: Open, tick: float) -> None:
    """An entry scheduled for 100 ticks does not run at the 99th and runs at the next, at any resolution."""
    scheduler = reopen(tick=tick)
    number = scheduler.enqueue(b"job", delay=100 * tick, now=0.0)
    for passed in range(100):
        assert scheduler.tick(passed * tick) == []
    assert scheduler.tick(100 * tick) == [Entry(number, 100 * tick, 1, b"job")]
    assert scheduler.tick(200 * tick) == []


@pytest.mark.parametrize("span", [4, 4 * 3, 4 * 3 * 2])
@pytest.mark.parametrize("offset", [-1, 0, 1])
@pytest.mark.parametrize("restart", [False, True])
def test_it_runs_at_its_tick_on_both_sides_of_every_level(reopen: Open, span: int, offset: int, restart: bool) -> None:
    """A delay beyond a level cascades down and fires at its own tick, before a restart and after one."""
    due = span + offset
    scheduler = reopen(levels=(4, 3, 2))
    scheduler.tick(0)
    scheduler.enqueue(b"job", due=due, now=0)
    if restart:
        scheduler = reopen(levels=(4, 3, 2))
    fired = [now for now in range(2 * span + 2) if scheduler.tick(now)]
    assert fired == [due]


def test_a_delay_below_a_tick_rounds_up(scheduler: DelayedScheduler) -> None:
    """Half a tick from now is the next tick, not this one."""
    scheduler.enqueue(b"job", delay=0.5, now=10.0)
    assert scheduler.tick(10.0) == []
    assert scheduler.tick(10.99) == []
    assert payloads(scheduler.tick(11.0)) == [b"job"]


def test_what_is_due_already_comes_with_the_next_tick(scheduler: DelayedScheduler) -> None:
    """No delay, a negative one, and a due time in the past are all due at once, the earliest first."""
    scheduler.tick(100)
    scheduler.enqueue(b"now", delay=0, now=100)
    scheduler.enqueue(b"before", delay=-5, now=100)
    scheduler.enqueue(b"long ago", due=3, now=100)
    assert payloads(scheduler.tick(100)) == [b"long ago", b"before", b"now"]


@pytest.mark.parametrize("times", [{}, {"delay": 1.0, "due": 2.0}])
def test_a_time_is_given_in_one_way(scheduler: DelayedScheduler, times: dict[str, float]) -> None:
    """Neither none nor two."""
    with pytest.raises(ValueError, match=r"enqueue got delay=.* and due=.*: give one of the two\."):
        scheduler.enqueue(b"job", now=0.0, **times)


@pytest.mark.parametrize("time", [math.nan, math.inf, -math.inf, 1e13])
def test_a_time_off_the_axis_is_refused_and_not_journaled(reopen: Open, time: float) -> None:
    """What no wheel could hold never gets into the journal, where it would be met at every opening."""
    scheduler = reopen()
    for call in (
        lambda: scheduler.enqueue(b"job", due=time, now=0.0),
        lambda: scheduler.enqueue(b"job", delay=1.0, now=time),
        lambda: scheduler.tick(time),
    ):
        with pytest.raises(ValueError, match=r"Time is .*: give seconds between -1e12 and 1e12"):
            call()
    scheduler.enqueue(b"farthest", due=1e12, now=0.0)
    assert len(reopen(tick=1e-6)) == 1


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"tick": 0.0}, "DelayedScheduler tick is 0.0: give seconds, at least 1e-06."),
        ({"tick": math.nan}, "DelayedScheduler tick is nan: give seconds, at least 1e-06."),
        ({"tick": math.inf}, "TimingWheel tick is inf"),
        ({"levels": (1,)}, "TimingWheel levels are"),
        ({"max_attempts": 0}, "DelayedScheduler max_attempts is 0: give 1 or more."),
    ],
)
def test_numbers_that_make_no_scheduler_are_refused(reopen: Open, options: dict[str, Any], text: str) -> None:
    """The text names the number, and the journal is free for the next try."""
    with pytest.raises(ValueError, match=text):
        reopen(**options)
    reopen()


def test_cancelled_in_time_it_never_runs(reopen: Open) -> None:
    """Cancelling tells whether it came in time, holds after a restart, and is a no-op the second time."""
    scheduler = reopen()
    number = scheduler.enqueue(b"job", delay=10, now=0)
    assert scheduler.cancel(number) is True
    assert scheduler.cancel(number) is False
    assert scheduler.tick(20) == []
    assert reopen().tick(20) == []


def test_cancelled_after_dispatch_it_says_that_it_is_too_late(scheduler: DelayedScheduler) -> None:
    """An entry in flight and one that is done are not touched."""
    number = scheduler.enqueue(b"job", delay=1, now=0)
    scheduler.tick(1)
    assert scheduler.cancel(number) is False
    scheduler.done(number)
    assert scheduler.cancel(number) is False
    assert scheduler.cancel(4711) is False


def test_what_was_due_and_not_taken_can_be_cancelled(scheduler: DelayedScheduler) -> None:
    """A tick with a limit leaves the rest where cancel reaches it, and the next tick takes it in order."""
    numbers = [scheduler.enqueue(b"%d" % due, due=due, now=0) for due in (4, 3, 2, 1)]
    assert payloads(scheduler.tick(10, limit=1)) == [b"1"]
    assert scheduler.next_tick() == 10
    assert scheduler.cancel(numbers[1]) is True
    assert payloads(scheduler.tick(10, limit=1)) == [b"2"]
    assert payloads(scheduler.tick(10)) == [b"4"]


def test_what_is_done_never_comes_back(reopen: Open) -> None:
    """After done, neither a tick nor a restart hands it out again."""
    scheduler = reopen()
    numbers = [scheduler.enqueue(b"%d" % number, due=1, now=0) for number in range(4)]
    scheduler.tick(1)
    scheduler.done(*numbers[:3])
    assert payloads(reopen().tick(100)) == [b"3"]


def test_in_flight_at_a_crash_it_comes_back_with_its_attempt_counted(reopen: Open) -> None:
    """Who has not said done gets it again, as the next attempt, until there are none left."""
    scheduler = reopen(max_attempts=3)
    number = scheduler.enqueue(b"kills its process", due=1, now=0)
    for attempt in (1, 2, 3):
        assert scheduler.tick(5) == [Entry(number, 1.0, attempt, b"kills its process")]
        scheduler = reopen(max_attempts=3)
    assert scheduler.tick(5) == []
    ((entry, error),) = scheduler.dead()
    assert (entry.id, entry.attempt, error) == (number, 3, "The process ended during the last attempt.")
    assert reopen(max_attempts=9).dead() == [(entry, error)]


def test_a_failing_entry_comes_back_later_each_time_and_then_is_dead(reopen: Open) -> None:
    """The waits grow up to the cap; after the last attempt the entry is kept with its error, for people to see."""
    scheduler = reopen(tick=0.5, backoff=Backoff(base=2.0, factor=3.0, cap=20.0), max_attempts=6)
    number = scheduler.enqueue(b"job", due=100, now=0)
    now, waits = 100.0, []
    for attempt in range(1, 6):
        assert scheduler.tick(now) == [Entry(number, now, attempt, b"job")]
        due = scheduler.failed(number, "no luck", now=now)
        assert scheduler.tick(due - 0.5) == []
        waits.append(due - now)
        now = due
    assert waits == [2.0, 6.0, 14.5, 15.0, 15.0]  # jitter is cut at the cap, and chance stands in the middle
    assert scheduler.tick(now) == [Entry(number, now, 6, b"job")]
    assert scheduler.failed(number, "no luck at all", now=now) is None
    assert scheduler.tick(now + 1000) == []
    assert scheduler.dead() == [(Entry(number, now, 6, b"job"), "no luck at all")]
    assert len(scheduler) == 0


def test_a_retry_is_one_record(reopen: Open, tmp_path: Path) -> None:
    """The end of an attempt and the time of the next cannot be torn apart by a crash, and hold after a restart."""
    scheduler = reopen()
    number = scheduler.enqueue(b"job", due=1, now=0)
    scheduler.tick(1)
    before = len(list(read(tmp_path / "journal")))
    due = scheduler.failed(number, "no luck", now=50)
    assert len(list(read(tmp_path / "journal"))) == before + 1
    scheduler = reopen()
    assert scheduler.tick(due - 1) == []
    assert scheduler.tick(due) == [Entry(number, due, 2, b"job")]


def test_a_retry_can_be_cancelled(scheduler: DelayedScheduler) -> None:
    """An entry keeps its id from attempt to attempt."""
    number = scheduler.enqueue(b"job", due=1, now=0)
    scheduler.tick(1)
    scheduler.failed(number, "no luck", now=1)
    assert scheduler.cancel(number) is True
    assert scheduler.tick(1000) == []


def test_what_is_handed_back_waits_again_and_has_lost_nothing(reopen: Open) -> None:
    """An entry whose work has not begun is handed out again as the same attempt, after a restart too."""
    scheduler = reopen(max_attempts=1)
    number = scheduler.enqueue(b"job", due=1, now=0)
    for _ in range(3):
        assert [entry.attempt for entry in scheduler.tick(1)] == [1]
        scheduler.hand_back(number)
    assert [entry.attempt for entry in reopen(max_attempts=1).tick(1)] == [1]


@pytest.mark.parametrize("end", ["done", "hand_back", "failed"])
def test_an_attempt_ends_once(scheduler: DelayedScheduler, end: str) -> None:
    """Ending what is not in flight is an error that names the entry and changes nothing."""
    extra = {"failed": (("no luck",), {"now": 1.0})}.get(end, ((), {}))
    waiting = scheduler.enqueue(b"waits", due=100, now=0)
    number = scheduler.enqueue(b"job", due=1, now=0)
    scheduler.tick(1)
    scheduler.done(number)
    for stranger in (number, waiting, 4711):
        with pytest.raises(LookupError, match=rf"Entries \[{stranger}\] are not in flight"):
            getattr(scheduler, end)(stranger, *extra[0], **extra[1])
    assert len(scheduler) == 1


def test_if_one_of_several_is_not_in_flight_none_is_done(scheduler: DelayedScheduler) -> None:
    """Done is for all that were named, or for none."""
    number = scheduler.enqueue(b"job", due=1, now=0)
    scheduler.tick(1)
    with pytest.raises(LookupError):
        scheduler.done(number, 4711)
    scheduler.done(number)


def test_of_two_threads_that_end_an_attempt_one_wins(scheduler: DelayedScheduler) -> None:
    """Either it is done or it is tried again, never both."""
    for _ in range(30):
        number = scheduler.enqueue(b"job", due=1, now=0)
        scheduler.tick(10**6)
        outcomes: list[str] = []
        barrier = threading.Barrier(2)

        def end(name: str, call: Callable[[], object]) -> None:
            barrier.wait()  # noqa: B023 - the thread ends within this turn
            with suppress(LookupError):
                call()
                outcomes.append(name)  # noqa: B023 - the same

        calls = {"done": partial(scheduler.done, number), "failed": partial(scheduler.failed, number, "no", now=10**6)}
        threads = [threading.Thread(target=end, args=call) for call in calls.items()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(outcomes) == 1
        assert scheduler.cancel(number) is (outcomes == ["failed"])


def test_the_dead_are_kept_until_forgotten(reopen: Open) -> None:
    """They survive snapshots and restarts, in the order of their deaths, and go when told to."""
    scheduler = reopen(max_attempts=1)
    numbers = [scheduler.enqueue(b"%d" % number, due=1, now=0) for number in range(3)]
    scheduler.tick(1)
    for number in reversed(numbers):
        scheduler.failed(number, f"error {number} \udcff", now=1)
    scheduler.snapshot()
    scheduler = reopen()
    assert [dead.entry.id for dead in scheduler.dead()] == numbers[::-1]
    assert scheduler.dead()[0].error == f"error {numbers[-1]} \\udcff"
    assert scheduler.forget(numbers[1]) is True
    assert scheduler.forget(numbers[1]) is False
    assert [dead.entry.id for dead in reopen().dead()] == [numbers[2], numbers[0]]


def test_a_very_long_error_is_cut(reopen: Open) -> None:
    """A text of megabytes does not fill the journal."""
    scheduler = reopen(max_attempts=1)
    number = scheduler.enqueue(b"job", due=1, now=0)
    scheduler.tick(1)
    scheduler.failed(number, "x" * 10**6, now=1)
    assert len(scheduler.dead()[0].error) == LONGEST_ERROR


def test_an_id_is_never_used_again(reopen: Open) -> None:
    """Not even when a snapshot has wiped out every trace of the entries that had the last ones."""
    seen = []
    for _ in range(3):
        scheduler = reopen()
        seen += [scheduler.enqueue(b"job", due=1, now=0) for _ in range(3)]
        scheduler.done(*[entry.id for entry in scheduler.tick(1)])
        scheduler.snapshot()
    assert seen == sorted(set(seen))


def test_a_step_back_of_the_clock_fires_nothing_early(scheduler: DelayedScheduler) -> None:
    """Until the clock is where it was nothing fires, neither what waits nor what was left; then everything due."""
    scheduler.enqueue(b"left", due=50, now=0)
    scheduler.enqueue(b"waits", due=120, now=0)
    scheduler.enqueue(b"taken", due=40, now=0)
    assert payloads(scheduler.tick(100, limit=1)) == [b"taken"]
    scheduler.enqueue(b"new", delay=10, now=20)
    assert scheduler.tick(20) == scheduler.tick(60) == scheduler.tick(99) == []
    assert scheduler.next_tick() == 100
    assert payloads(scheduler.tick(100)) == [b"left", b"new"]
    assert payloads(scheduler.tick(120)) == [b"waits"]


def test_the_next_tick_is_when_something_may_be_due(scheduler: DelayedScheduler) -> None:
    """None while nothing waits; else a time up to which ticks are in vain, and from which they get ahead."""
    assert scheduler.next_tick() is None
    number = scheduler.enqueue(b"job", due=70_000, now=0)
    assert scheduler.next_tick() <= 70_000
    while not (entries := scheduler.tick(scheduler.next_tick())):
        pass
    assert payloads(entries) == [b"job"]
    assert scheduler.next_tick() is None
    scheduler.done(number)


def test_a_grown_journal_shrinks_to_what_is_pending(reopen: Open, tmp_path: Path) -> None:
    """Beyond a megabyte or four times the last snapshot one is taken, and opening reads about what is pending."""
    scheduler = reopen()
    kept = scheduler.enqueue(b"kept", due=10**6, now=0)
    for _ in range(3000):
        number = scheduler.enqueue(bytes(1000), due=1, now=0)
        scheduler.cancel(number)
    metrics = scheduler.metrics()
    assert metrics.journal.snapshots == 3
    assert metrics.journal.size < 1.1 * 2**20
    scheduler.snapshot()
    scheduler = reopen()
    assert scheduler.metrics().recovered == 2
    assert [entry.id for entry in scheduler.tick(10**6)] == [kept]


def test_a_snapshot_keeps_what_is_in_flight(reopen: Open) -> None:
    """Its attempt stays counted, it can be ended after the snapshot, and comes back after a crash otherwise."""
    scheduler = reopen()
    first, second = (scheduler.enqueue(b"job", due=1, now=0) for _ in range(2))
    scheduler.tick(1)
    scheduler.snapshot()
    scheduler.done(first)
    assert [(entry.id, entry.attempt) for entry in reopen().tick(1)] == [(second, 2)]


FULL = """
import os, resource, sys
from scheduling import DelayedScheduler, JournalWriteFailed
scheduler = DelayedScheduler(sys.argv[1], tick=1.0)
numbers = [scheduler.enqueue(b"job", due=1, now=0) for _ in range(3)]
cancelled = scheduler.enqueue(b"cancelled", due=1, now=0)
size = os.path.getsize(sys.argv[1])
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
def refused(call):
    resource.setrlimit(resource.RLIMIT_FSIZE, (os.path.getsize(sys.argv[1]) + 3, hard))
    try: call()
    except JournalWriteFailed: pass
    else: raise SystemExit("not refused")
    finally: resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
refused(lambda: scheduler.enqueue(b"never", due=1, now=0))
refused(lambda: scheduler.cancel(cancelled))
assert scheduler.cancel(cancelled)
refused(lambda: scheduler.tick(1))
refused(lambda: scheduler.tick(1, limit=1))
assert [entry.id for entry in scheduler.tick(1)] == numbers
refused(lambda: scheduler.done(*numbers))
scheduler.done(numbers[0])
refused(lambda: scheduler.failed(numbers[1], "no", now=1))
refused(lambda: scheduler.hand_back(numbers[1]))
assert scheduler.failed(numbers[1], "no", now=1)
print("sound")
"""


def test_a_full_disk_changes_nothing_in_memory_either(tmp_path: Path) -> None:
    """Every call that the disk refuses can be made again later, as if it had not been made."""
    process = subprocess.run(
        [sys.executable, "-c", FULL, tmp_path / "journal"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert process.stdout == "sound\n", process.stderr
    with DelayedScheduler(tmp_path / "journal") as scheduler:
        assert [(entry.id, entry.attempt) for entry in scheduler.tick(10**6)] == [(3, 2), (2, 2)]


def test_a_snapshot_that_is_due_and_impossible_fails_nobody(reopen: Open, tmp_path: Path) -> None:
    """The change that made it due stands; the failure is counted, and tried again a megabyte later."""
    scheduler = reopen()
    (tmp_path / "journal.tmp").mkdir()
    for _ in range(1500):
        scheduler.cancel(scheduler.enqueue(bytes(1000), due=1, now=0))
    assert scheduler.metrics().snapshot_failures == 1
    (tmp_path / "journal.tmp").rmdir()
    for _ in range(800):
        scheduler.cancel(scheduler.enqueue(bytes(1000), due=1, now=0))
    assert (scheduler.metrics().snapshot_failures, scheduler.metrics().journal.snapshots) == (1, 1)


def test_a_poisoned_journal_stops_everything(scheduler: DelayedScheduler) -> None:
    """Nothing is handed out whose attempt could not be written down."""
    scheduler.enqueue(b"job", due=1, now=0)
    descriptor = os.open("/dev/null", os.O_RDWR)
    os.dup2(descriptor, scheduler._ledger._journal._file._descriptor, inheritable=False)
    os.close(descriptor)
    for call in (lambda: scheduler.tick(1), lambda: scheduler.enqueue(b"new", due=1, now=0), scheduler.snapshot):
        with pytest.raises(JournalPoisoned):
            call()


def test_a_journal_of_something_else_is_refused(tmp_path: Path) -> None:
    """Records that are not a scheduler's are named, and the journal is free again."""
    path = tmp_path / "journal"
    with Journal(path) as journal:
        journal.append(b'{"json": true}')
    for _ in range(2):
        with pytest.raises(JournalError, match=rf"Journal {path} is not that of a delayed scheduler: Record b'{{"):
            DelayedScheduler(path)


def test_a_torn_tail_is_reported(reopen: Open, tmp_path: Path) -> None:
    """What was cut on opening can be asked for."""
    scheduler = reopen()
    assert scheduler.torn is None
    scheduler.enqueue(b"job", due=1, now=0)
    size = scheduler.metrics().journal.size
    scheduler.close()
    with (tmp_path / "journal").open("ab") as file:
        file.write(b"torn")
    assert reopen().torn == (size, 4)


def test_after_close_every_change_is_refused(scheduler: DelayedScheduler) -> None:
    """The text tells to open it again."""
    scheduler.enqueue(b"job", due=1, now=0)
    scheduler.close()
    with pytest.raises(JournalClosed):
        scheduler.enqueue(b"job", due=1, now=0)
    with pytest.raises(JournalClosed):
        scheduler.tick(1)


def test_it_measures_ticks_and_how_late_they_and_entries_were(scheduler: DelayedScheduler) -> None:
    """Drift is how long after the wanted moment a tick came, latency how long after its due time an entry."""
    scheduler.tick(0)
    for due in (10, 20):
        scheduler.enqueue(b"job", due=due, now=0)
    scheduler.tick(0)
    scheduler.tick(13)
    scheduler.tick(15)
    scheduler.tick(21)
    scheduler.tick(5)
    metrics = scheduler.metrics()
    assert (metrics.ticks, metrics.drift_sum, metrics.drift_max) == (5, 4.0, 3.0)
    assert (metrics.dispatched, metrics.latency_sum, metrics.latency_max) == (2, 4.0, 3.0)
    assert (metrics.pending, metrics.in_flight, metrics.dead, metrics.recovered) == (2, 2, 0, 0)
    assert metrics.journal.appends == metrics.journal.fsyncs == 4


class Clock:
    """A clock that goes on by `step` seconds whenever somebody looks."""

    def __init__(self, step: float) -> None:
        self.now = 0.0
        self.step = step

    def __call__(self) -> float:
        """Look at it."""
        self.now += self.step
        return self.now


def test_run_calls_the_handler_and_comes_again_after_failures(scheduler: DelayedScheduler) -> None:
    """A handler that fails twice is called three times, and with drain the loop ends when nothing is pending."""
    calls = []

    def handler(entry: Entry) -> None:
        calls.append((entry.payload, entry.attempt))
        if entry.payload == b"bad" and entry.attempt < 3:
            raise ZeroDivisionError("no luck")

    scheduler.enqueue(b"good", delay=5, now=0)
    scheduler.enqueue(b"bad", delay=3, now=0)
    scheduler.run(handler, clock=Clock(1.0), longest_wait=0.001, drain=True)
    assert calls == [(b"bad", 1), (b"good", 1), (b"bad", 2), (b"bad", 3)]
    assert scheduler.dead() == []


def test_run_buries_what_always_fails(reopen: Open) -> None:
    """The error is kept with its type."""
    scheduler = reopen(max_attempts=2)
    scheduler.enqueue(b"bad", delay=3, now=0)
    scheduler.run(lambda _entry: 1 / 0, clock=Clock(1.0), longest_wait=0.001, drain=True)
    assert [dead.error for dead in scheduler.dead()] == ["ZeroDivisionError: division by zero"]


def test_stopped_it_hands_back_what_it_has_not_begun(reopen: Open) -> None:
    """The entry at hand is finished, the others keep their attempts and their order."""
    scheduler = reopen()
    for due in range(5):
        scheduler.enqueue(b"%d" % due, due=due, now=0)
    seen = []

    def handler(entry: Entry) -> None:
        seen.append(entry.payload)
        if entry.payload == b"1":
            scheduler.stop()

    scheduler.run(handler, clock=lambda: 100.0)
    scheduler.run(handler, clock=lambda: 100.0)
    assert seen == [b"0", b"1"]
    assert [(entry.payload, entry.attempt) for entry in reopen().tick(100)] == [(b"2", 1), (b"3", 1), (b"4", 1)]


def test_an_interrupt_leaves_one_in_flight_and_hands_back_the_rest(reopen: Open) -> None:
    """KeyboardInterrupt goes through; only the entry that it hit has lost an attempt."""
    scheduler = reopen()
    for due in range(3):
        scheduler.enqueue(b"%d" % due, due=due, now=0)

    def handler(entry: Entry) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        scheduler.run(handler, clock=lambda: 100.0)
    assert scheduler.metrics().in_flight == 1
    assert [entry.attempt for entry in reopen().tick(100)] == [2, 1, 1]


def test_a_sleeping_loop_notices_what_is_enqueued_and_when_it_is_stopped(scheduler: DelayedScheduler) -> None:
    """However long it would sleep, a new entry and a stop wake it."""
    fired = threading.Event()
    loop = threading.Thread(
        target=scheduler.run,
        args=(lambda _entry: fired.set(),),
        kwargs={"clock": lambda: 100.0, "longest_wait": 10**6},
    )
    loop.start()
    scheduler.enqueue(b"job", due=1, now=0)
    assert fired.wait(30)
    scheduler.stop()
    loop.join(30)
    assert not loop.is_alive()


def test_many_threads_enqueue_cancel_and_tick_at_once(reopen: Open) -> None:
    """With snapshots in between, every entry is handed out or cancelled, once, here or after a restart."""
    scheduler = reopen(max_attempts=1)
    cancelled: set[int] = set()
    made: set[int] = set()
    done: list[int] = []
    lock = threading.Lock()

    def client(index: int) -> None:
        for number in range(60):
            made_now = scheduler.enqueue(b"job", due=number, now=0)
            won = number % 3 == 0 and scheduler.cancel(made_now)
            with lock:
                made.add(made_now)
                if won:
                    cancelled.add(made_now)
            if number % 20 == index:
                scheduler.snapshot()

    clients = [threading.Thread(target=client, args=(index,)) for index in range(6)]
    for thread in clients:
        thread.start()
    now = 0
    while any(thread.is_alive() for thread in clients):
        now += 1
        ids = [entry.id for entry in scheduler.tick(now % 50)]
        done += ids
        scheduler.done(*ids)
    scheduler = reopen(max_attempts=1)
    done += [entry.id for entry in scheduler.tick(100)]
    assert len(done) == len(set(done))
    assert set(done) == made - cancelled
    assert made == set(range(1, 361))


def test_a_snapshot_waits_for_what_is_half_done_and_keeps_newcomers_out() -> None:
    """Between a record and its effect no snapshot is taken, and who asks for one is not passed by newcomers."""
    gate = Gate()
    order: list[str] = []

    def enter(name: str, how: Callable[[], AbstractContextManager[None]]) -> None:
        with how():
            order.append(name)

    snapshot = threading.Thread(target=enter, args=("snapshot", gate.exclusive))
    newcomer = threading.Thread(target=enter, args=("newcomer", gate.shared))
    with gate.shared():
        snapshot.start()
        while snapshot.is_alive() and not gate._closed:
            os.sched_yield()
        newcomer.start()
        snapshot.join(0.1)  # a gate that lets anybody in now is caught; a good one loses a tenth of a second
        order.append("first")
    snapshot.join()
    newcomer.join()
    assert order == ["first", "snapshot", "newcomer"]
