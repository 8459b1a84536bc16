"""A PostgreSQL that a test may stop and start, and the processes that use it."""

import json
import os
import socket
import subprocess
import sys
from typing import Any

import httpx
import psycopg

from dilamme_project import embedded
from tests.support import ROOT, wait_until

KEY = "a-key-that-only-the-tests-know"


class Server:
    """A PostgreSQL of the test's own, and the processes that use it."""

    def __init__(self, name: str) -> None:
        self.postgres = embedded.server(name)
        self.postgres.ensure_postgres_running()
        self.environment = {**os.environ, "DATABASE_URL": self.postgres.get_uri()}
        self.environment |= {"DJANGO_SETTINGS_MODULE": "tests.settings", "DILAMME_API_KEYS": f"tests={KEY}"}
        self._started: list[subprocess.Popen[bytes]] = []
        self._clients: list[httpx.Client] = []
        with psycopg.connect(self.postgres.get_uri(), autocommit=True) as connection:
            connection.execute("drop schema public cascade; create schema public")
            connection.execute("create table trace (id serial, job_id text, word text)")
        self.manage("migrate", "-v", "0").wait(60)

    def manage(self, *arguments: str, **dilamme: Any) -> "subprocess.Popen[bytes]":
        """Start a command of manage.py, with settings of Dilamme's."""
        return self._start([sys.executable, "manage.py", *arguments], dilamme)

    def web(self, **dilamme: Any) -> httpx.Client:
        """Start daphne, and return a client of it."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        daphne = [
            sys.executable,
            "-m",
            "daphne",
            "-b",
            "127.0.0.1",
            "-p",
            str(port),
            "dilamme_project.asgi:application",
        ]
        self._start(daphne, dilamme)
        client = httpx.Client(base_url=f"http://127.0.0.1:{port}", headers={"X-API-Key": KEY}, timeout=10)
        self._clients.append(client)
        wait_until(lambda: answers(client), within=30)
        return client

    def enqueue(self, kind: str, **arguments: Any) -> None:
        """Enqueue a job of one of the types in tests.app."""
        code = f"import django; django.setup(); from tests.app import tasks; tasks.{kind}.enqueue(**{arguments!r})"
        subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=self.environment, check=True)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Ask the database."""
        with psycopg.connect(self.postgres.get_uri(), autocommit=True) as connection:
            return connection.execute(query).fetchall()

    def end(self) -> None:
        """End what was started."""
        for client in self._clients:
            client.close()
        for process in self._started:
            process.kill()
            process.wait(10)
        self.postgres.ensure_postgres_running()  # the package ends it with this process, and complains if it cannot

    def _start(self, command: list[str], dilamme: dict[str, Any]) -> "subprocess.Popen[bytes]":
        environment = {**self.environment, "TEST_DILAMME": json.dumps(dilamme)}
        self._started.append(subprocess.Popen(command, cwd=ROOT, env=environment))
        return self._started[-1]


def answers(client: httpx.Client) -> bool:
    """Whether the web server is up."""
    try:
        return client.get("/health").status_code in {200, 503}
    except httpx.TransportError:
        return False
