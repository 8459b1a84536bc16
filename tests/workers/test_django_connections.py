"""Database connections of handlers: bounded, clean between jobs, gone when the worker is idle."""

import pytest
from asgiref.sync import sync_to_async
from django.db import connection, transaction

from jobs.models import Job
from tests.support import handler, status_of, wait_for, wait_for_all, wait_until

pytestmark = pytest.mark.django_db(transaction=True)

OWN = 5  # a worker's own connections: loop, listener, heartbeat, broadcaster, and one to spare


def connections_now() -> int:
    """Count the connections of others to this database."""
    with connection.cursor() as cursor:
        cursor.execute(
            "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
        )
        return cursor.fetchone()[0]


@pytest.mark.parametrize("max_age", [0, 60, None])
def test_handlers_that_use_the_orm_leave_no_connection_behind(start_worker, max_age):
    """With 200 sync and 200 async ORM jobs connections stay bounded by the pool, and go when it is idle."""
    highest = 0

    def sync_orm() -> int:
        return Job.objects.count()

    async def async_orm() -> int:
        return await Job.objects.acount()

    before = connection.settings_dict["CONN_MAX_AGE"]
    connection.settings_dict["CONN_MAX_AGE"] = max_age
    try:
        with handler(sync_orm) as sync, handler(async_orm) as later:
            start_worker(concurrency=4)
            sync.enqueue_many([{}] * 200)
            later.enqueue_many([{}] * 200)

            def all_done() -> bool:
                nonlocal highest
                highest = max(highest, connections_now())
                return Job.objects.filter(status="completed").count() == 400

            wait_until(all_done, within=60)
            assert highest <= OWN + 4 + 1
            wait_until(lambda: connections_now() <= OWN, within=10)
    finally:
        connection.settings_dict["CONN_MAX_AGE"] = before


def test_a_transaction_left_open_is_rolled_back_and_fails_the_attempt(start_worker):
    """What the handler wrote is gone, so the job may not count as done; the next job finds a clean connection."""

    def forgetful() -> str:
        transaction.set_autocommit(False)
        Job.objects.create(type="leftover")
        return "done, so it thinks"

    def raw() -> None:
        with connection.cursor() as cursor:
            cursor.execute("begin")
            cursor.execute("delete from dilamme_jobevent")

    def inside() -> None:
        transaction.atomic().__enter__()
        Job.objects.create(type="leftover")

    def next_one() -> int:
        with transaction.atomic():
            return Job.objects.filter(type="leftover").count()

    with handler(next_one) as following:
        for bad in (forgetful, raw, inside):
            with handler(bad, max_attempts=1) as task:
                worker = start_worker(concurrency=1)
                job = wait_for(task.enqueue().pk, "failed")
                assert "left a transaction open on the database 'default'; it was rolled back" in job.last_error
                assert wait_for(following.enqueue().pk, "completed").result == 0
                worker.stop()


def test_an_async_handler_that_leaves_a_transaction_open_is_cleaned_up(start_worker):
    """The thread that serves async handlers gets a clean connection for the next one."""

    async def forgetful() -> None:
        await sync_to_async(transaction.set_autocommit)(False)
        await Job.objects.acreate(type="leftover")

    async def next_one() -> int:
        return await Job.objects.filter(type="leftover").acount()

    with handler(forgetful, max_attempts=1) as bad, handler(next_one) as following:
        start_worker(concurrency=1)
        assert "left a transaction open" in wait_for(bad.enqueue().pk, "failed").last_error
        assert wait_for(following.enqueue().pk, "completed").result == 0


def test_a_connection_that_broke_is_replaced_for_the_next_job(start_worker):
    """A handler whose connection is cut fails; the next one in the same thread works."""

    def cut() -> None:
        with connection.cursor() as cursor:
            cursor.execute("select pg_terminate_backend(pg_backend_pid())")

    with handler(cut, max_attempts=1) as bad, handler(lambda: Job.objects.count(), name="fine") as fine:
        start_worker(concurrency=1)
        bad_job, good_job = bad.enqueue(), fine.enqueue()
        assert "OperationalError" in wait_for(bad_job.pk, "failed").last_error
        assert wait_for(good_job.pk, "completed").result == 2


def test_enqueueing_from_a_handler_belongs_to_the_handlers_transaction(start_worker):
    """A job made inside a handler's atomic block is gone with it when the block fails."""

    def maker() -> None:
        with transaction.atomic():
            child.enqueue()
            raise ValueError("no")

    with handler(lambda: None, name="child") as child, handler(maker, max_attempts=1) as task:
        start_worker()
        wait_for(task.enqueue().pk, "failed")
        assert not Job.objects.filter(type="child").exists()
        kept = child.enqueue()
        wait_for_all("completed", 1)
        assert status_of(kept.pk) == "completed"
