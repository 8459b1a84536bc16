"""Fixtures for all tests: a database of its own for each process, and real workers to run jobs with."""

import sys
from collections.abc import Callable, Iterator

import psycopg
import pytest
from django.core.management import call_command
from django.db import connection, connections
from psycopg import sql

from tests.support import WorkerProcess, WorkerThread

_MAKING, _RUNS = 4_715_001, 4_715_002  # keys of advisory locks


@pytest.fixture(scope="session")
def django_db_setup(django_db_blocker, worker_id: str, testrun_uid: str) -> Iterator[None]:
    """Migrate one template database per run, and copy it for each process of the run."""
    host_database = connection.settings_dict["NAME"]
    template, copy = f"dilamme_test_{testrun_uid}", f"dilamme_test_{testrun_uid}_{worker_id}"
    with django_db_blocker.unblock(), _maintenance() as server:
        server.execute("select pg_advisory_lock_shared(%s, hashtext(%s))", [_RUNS, testrun_uid])  # this run is alive
        server.execute("select pg_advisory_lock(%s)", [_MAKING])
        if not server.execute("select 1 from pg_database where datname = %s", [template]).fetchone():
            _drop_leftovers(server)
            _run(server, "create database {}", template)
            _use(template)
            call_command("migrate", verbosity=0)
            connections.close_all()
        _run(server, "create database {} template {}", copy, template)
        server.execute("select pg_advisory_unlock(%s)", [_MAKING])
        _use(copy)
        yield
        connections.close_all()
        _use(host_database)
        _run(server, "drop database {}", copy)  # fails if a test has left a connection open: that is a finding


def _maintenance() -> psycopg.Connection:
    arguments = connection.get_connection_params()
    wanted = ("host", "port", "user", "password")
    return psycopg.connect(dbname="postgres", autocommit=True, **{k: v for k, v in arguments.items() if k in wanted})


def _run(server: psycopg.Connection, statement: str, *names: str) -> None:
    server.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))


def _drop_leftovers(server: psycopg.Connection) -> None:
    """Remove the databases of runs that have ended; other runs may be going on beside this one."""
    for (name,) in server.execute("select datname from pg_database where datname like 'dilamme\\_test\\_%'").fetchall():
        key = [_RUNS, name.split("_")[2]]
        if server.execute("select pg_try_advisory_lock(%s, hashtext(%s))", key).fetchone() == (True,):
            _run(server, "drop database if exists {} with (force)", name)
            server.execute("select pg_advisory_unlock(%s, hashtext(%s))", key)


def _use(database: str) -> None:
    connection.close()
    connection.settings_dict["NAME"] = database
    connections.settings["default"]["NAME"] = database


@pytest.fixture
def start_worker() -> Iterator[Callable[..., WorkerThread]]:
    """Start workers inside this process; they are stopped, and their connections gone, when the test ends."""
    started: list[WorkerThread] = []

    def start(**plan: object) -> WorkerThread:
        started.append(WorkerThread(**plan))
        return started[-1]

    yield start
    for worker in started:
        worker.stop()


@pytest.fixture
def start_worker_process() -> Iterator[Callable[..., WorkerProcess]]:
    """Start `manage.py runworker` processes; they are ended when the test ends."""
    started: list[WorkerProcess] = []

    def start(*arguments: str, **environment: str) -> WorkerProcess:
        started.append(WorkerProcess(arguments, environment))
        return started[-1]

    yield start
    for process in started:
        sys.stdout.write(process.end())  # shown by pytest when the test has failed
