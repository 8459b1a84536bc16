"""The database goes away and comes back: nothing is lost, nothing is held back longer than it must."""

import threading
import time
import uuid

import psycopg
import pytest
from django.db import connection

from jobs import lifecycle
from jobs.lifecycle import Appetite, exchange
from jobs.models import Job, Worker
from jobs.queries import DjangoSession, connect
from tests.support import handler, history_of, wait_for, wait_until

pytestmark = pytest.mark.django_db(transaction=True)


def backends(pattern: str) -> list[int]:
    """Return the server processes on this database whose last query is like this."""
    with connection.cursor() as cursor:
        cursor.execute(
            "select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
            " and query ilike %s",
            [pattern],
        )
        return [row[0] for row in cursor.fetchall()]


def terminate(pattern: str = "%") -> int:
    """End the connections of others to this database whose last query is like this."""
    pids = backends(pattern)
    with connection.cursor() as cursor:
        for pid in pids:
            cursor.execute("select pg_terminate_backend(%s)", [pid])
    return len(pids)


def test_a_lost_listener_comes_back_and_hears_again(start_worker, settings):
    """With polls a minute apart, a job enqueued after the LISTEN connection was cut starts within seconds."""
    settings.DILAMME = {**settings.DILAMME, "POLL_INTERVAL": 60.0}
    with handler(lambda: None, name="fine") as task:
        worker = start_worker()
        wait_for(task.enqueue().pk, "completed", within=5)
        assert terminate("listen%") == 1
        wait_for(task.enqueue().pk, "completed", within=5)
        wait_until(lambda: worker.worker._ears.is_open, within=5)
        wait_for(task.enqueue().pk, "completed", within=2)


def test_connections_cut_in_mid_run_lose_no_outcome(start_worker):
    """Every connection of the worker is cut while a job runs: its outcome is recorded all the same, once."""
    started, release = threading.Event(), threading.Event()

    def slow() -> str:
        started.set()
        release.wait(20)
        return "kept"

    with handler(slow) as task:
        start_worker()
        job = task.enqueue()
        assert started.wait(10)
        assert terminate() >= 2
        release.set()
        done = wait_for(job.pk, "completed", within=15)
        assert (done.result, done.attempt) == ("kept", 1)
        assert history_of(job.pk) == ["completed"]


def test_a_storm_of_cut_connections_loses_and_doubles_nothing(start_worker):
    """Connections are cut again and again under load: every job ends, each handler ran once for each attempt."""
    runs: list[uuid.UUID] = []

    def count(ctx) -> None:
        runs.append((ctx.job_id, ctx.attempt))

    with handler(count) as task:
        start_worker(concurrency=4)
        start_worker(concurrency=4)
        jobs = task.enqueue_many([{}] * 3000)
        for _ in range(12):
            time.sleep(0.1)
            terminate()
        wait_until(lambda: Job.objects.filter(status="completed").count() == len(jobs), within=60)
        assert len(runs) == len(set(runs))


def test_claims_whose_commit_was_not_heard_of_are_adopted(start_worker):
    """What the database says a worker holds, and the worker does not know, is run by it after an outage."""
    with handler(lambda: "adopted", name="fine") as task:
        worker = start_worker(queues=["default"])
        wait_until(lambda: Worker.objects.exists())
        job = Job(type=task.name, queue="elsewhere")
        job.save()
        exchange(DjangoSession(), Appetite(worker.worker.worker_id, ["elsewhere"]), [], 1)
        assert Job.objects.get(pk=job.pk).status == "processing"
        terminate()
        task.enqueue()  # the next exchange finds its connection gone, and looks at what it holds
        assert wait_for(job.pk, "completed", within=15).result == "adopted"


def test_a_worker_waits_for_a_database_that_is_not_there_yet(start_worker):
    """Started while nothing can connect, it keeps trying and works as soon as something can."""
    with handler(lambda: None, name="fine") as task, connect() as keeper:
        job = task.enqueue()
        name = connection.settings_dict["NAME"]
        connection.close()
        with _maintenance() as server:
            server.execute(f'alter database "{name}" allow_connections false')
            try:
                worker = start_worker()
                time.sleep(0.7)
                assert worker.thread.is_alive()
                state = keeper.execute("select status from dilamme_job where id = %s", [job.pk]).fetchone()
                assert state == ("pending",)
            finally:
                server.execute(f'alter database "{name}" allow_connections true')
        wait_for(job.pk, "completed", within=20)


def _maintenance() -> psycopg.Connection:
    given = connection.get_connection_params()
    arguments = {k: v for k, v in given.items() if k in ("host", "port", "user", "password")}
    return psycopg.connect(dbname="postgres", autocommit=True, **arguments)


def test_a_lease_that_ran_out_while_the_process_slept_is_not_the_end(start_worker, settings):
    """A worker whose jobs were rescued while it was frozen reports a lost claim and goes on working."""
    settings.DILAMME = {**settings.DILAMME, "LEASE": 1.0, "SWEEP_INTERVAL": 60.0}
    started, release = threading.Event(), threading.Event()
    results = iter(["old", "new"])

    def slow(ctx) -> str:
        mine = next(results)
        started.set()
        if mine == "old":
            release.wait(20)
        return mine

    with handler(slow) as task:
        worker = start_worker(concurrency=1)
        job = task.enqueue()
        assert started.wait(10)
        Job.objects.filter(pk=job.pk).update(started_at="2020-01-01T00:00Z")
        worker.worker._heartbeat.stop()
        worker.worker._heartbeat.join()
        Worker.objects.all().delete()
        assert len(lifecycle.rescue(DjangoSession())) == 1
        Job.objects.filter(pk=job.pk).update(run_at="2020-01-01T00:00Z")
        other = start_worker(concurrency=1)
        assert wait_for(job.pk, "completed").result == "new"
        release.set()
        wait_until(lambda: worker.worker._pool.running == 0)
        assert worker.thread.is_alive()
        assert other.stop() == 0
        assert worker.stop() == 0
        assert Job.objects.get(pk=job.pk).result == "new"
        assert history_of(job.pk) == ["lost", "completed"]
