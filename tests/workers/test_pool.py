"""How jobs are spread over threads: few for short handlers, all of them as soon as one is not short."""

import threading
import uuid
from collections.abc import Iterator

import pytest

from jobs.claims import Claim, Ended
from jobs.outcomes import Succeeded
from scheduling import FAST
from tests.support import handler, wait_for_all, wait_until
from workers.pool import Pool
from workers.wakeup import Wakeup


@pytest.fixture
def pool() -> Iterator[Pool]:
    """A pool of eight slots."""
    pool = Pool(8, FAST, Wakeup())
    yield pool
    pool.close()


def claims(kind: str, count: int) -> list[Claim]:
    """Return claims, oldest first."""
    return [Claim(uuid.uuid4(), kind, "default", 2.0, "{}", 1, 0, 3, float(n), float(n), 100.0) for n in range(count)]


def succeeded(pool: Pool, count: int) -> bool:
    """Wait until so many runs have ended, and tell whether each of them succeeded."""
    seen: list[Ended] = []

    def collect() -> bool:
        seen.extend(pool.collect())
        return len(seen) >= count

    wait_until(collect, within=40)
    return all(isinstance(end.outcome, Succeeded) for end in seen)


def test_short_handlers_need_one_thread(pool):
    """Where handlers take microseconds, waking a second thread costs more than it brings."""
    threads = set()
    with handler(lambda: threads.add(threading.get_ident()), name="short"):
        pool.push(claims("short", 100), now=100.0)
        pool.fill(typical=0.000_005)
        assert succeeded(pool, 100)
    assert len(threads) == 1


def test_nothing_known_is_taken_for_long(pool):
    """Every slot is used at once: eight handlers that wait for one another all get there."""
    barrier = threading.Barrier(8)
    with handler(lambda: barrier.wait(20) and None, name="meet"):
        pool.push(claims("meet", 8), now=100.0)
        pool.fill(typical=None)
        assert succeeded(pool, 8)


def test_a_handler_that_turns_out_long_does_not_hold_up_the_others(pool):
    """Believed short, they all wait for one another: the next look sees that nothing moves, and spreads them."""
    barrier = threading.Barrier(8)
    with handler(lambda: barrier.wait(20) and None, name="meet"):
        pool.push(claims("meet", 8), now=100.0)
        pool.fill(typical=0.000_005)
        assert pool.holds_back

        def look_again() -> bool:
            pool.fill(typical=0.000_005)
            return not pool.holds_back

        wait_until(look_again)
        assert succeeded(pool, 8)


def test_async_handlers_start_whatever_the_threads_do(pool):
    """They need no thread of their own, so none is held back."""
    started = threading.Semaphore(0)
    release = threading.Event()

    async def quick() -> None:
        started.release()

    def slow() -> None:
        release.wait(20)

    with handler(slow, name="slow"), handler(quick, name="quick"):
        pool.push(claims("slow", 1), now=100.0)
        pool.fill(typical=0.000_005)
        pool.push(claims("quick", 5), now=100.0)
        pool.fill(typical=0.000_005)
        for _ in range(5):
            assert started.acquire(timeout=10)
        release.set()
        assert succeeded(pool, 6)


def test_the_worker_looks_again_while_jobs_are_held_back(start_worker, transactional_db):
    """End to end: after hundreds of short jobs, eight that need one another still meet."""
    barrier = threading.Barrier(8)
    with handler(lambda: None, name="short") as short, handler(lambda: barrier.wait(20) and None, name="meet") as meet:
        start_worker(concurrency=8)
        short.enqueue_many([{}] * 300)

        wait_for_all("completed", 300)
        meet.enqueue_many([{}] * 8)
        wait_for_all("completed", 308)
        assert not barrier.broken
