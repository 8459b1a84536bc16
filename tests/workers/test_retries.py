"""How soon a worker runs what has gone back to the queue."""

import threading
import time

import pytest

from jobs import Context, Retry, Snooze
from tests.support import WorkerThread, handler, history_of, wait_for, wait_until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(
    ("again", "kind"), [(Retry(after=0), "failed"), (Snooze(0), "snoozed")], ids=["retry", "snooze"]
)
def test_what_is_due_again_before_anybody_looks_ahead_waits_for_no_poll(start_worker, settings, again, kind):
    """Nothing tells this worker of work: it does not listen, and polls in an hour. It knows what it has handed in."""
    settings.DILAMME = {**settings.DILAMME, "LISTEN": False, "POLL_INTERVAL": 3600.0}
    is_calm = threading.Event()

    def twice(ctx: Context) -> None:
        assert is_calm.wait(20)
        if ctx.attempt == 1:
            raise again

    with handler(twice) as task:
        job = task.enqueue()
        started = start_worker()
        wait_for(job.pk, "processing")
        wait_until(lambda: looks_at_once(started))
        is_calm.set()
        wait_for(job.pk, "completed")
    assert history_of(job.pk) == [kind, "completed"]


def looks_at_once(started: WorkerThread) -> bool:
    """Whether the worker would look for work now; a look that was put off finds everything, when its time comes."""
    frontier = started.worker._appetite.frontier
    return frontier.postponed_until is None and frontier._not_before < time.monotonic()
