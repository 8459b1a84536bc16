"""Celery with Redis, which it starts for itself on a loopback port, in the measurement's folder, and ends.

Redis keeps nothing on disk here, and Celery acknowledges before a task runs: both are their fastest, and what neither
survives is a crash. There is no result and no table; what the broker no longer holds counts as done.
"""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path

import redis
from celery import Celery

from bench.peers import ledger
from bench.peers.adapter import module

_VARIABLE = "BENCH_REDIS"
_QUEUE = "celery"

app = Celery("bench", broker=os.environ.get(_VARIABLE))
app.conf.task_ignore_result = True
app.conf.worker_prefetch_multiplier = 128  # its guide's figure for many short tasks


@app.task(name="record")  # type: ignore[untyped-decorator]  # its types are not installed here
def record(number: int) -> None:
    """Note that job `number` ran."""
    ledger.record(number)


class CeleryAdapter:
    """The adapter."""

    def setup(self) -> None:
        """Start Redis."""
        port = _free_port()
        self._enqueued = 0
        self._server = subprocess.Popen(
            [
                shutil.which("redis-server") or "redis-server", "--bind", "127.0.0.1", "--port", str(port),
                "--dir", str(Path(os.environ[ledger.VARIABLE]).parent), "--save", "", "--appendonly", "no",
            ],
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
        os.environ[_VARIABLE] = f"redis://127.0.0.1:{port}/0"  # workers inherit it
        app.conf.broker_url = os.environ[_VARIABLE]
        self._redis = redis.Redis.from_url(os.environ[_VARIABLE])
        while not self._answers():
            time.sleep(0.02)

    def _answers(self) -> bool:
        try:
            return bool(self._redis.ping())
        except redis.ConnectionError:
            return False

    def enqueue_each(self, numbers: Iterable[int]) -> None:
        """Enqueue one by one."""
        for number in numbers:
            record.delay(number)
            self._enqueued += 1

    def enqueue_bulk(self, numbers: Sequence[int]) -> None:
        """Never called: Celery has no call for many."""
        raise NotImplementedError

    def enqueue_at(self, number: int, due: datetime) -> None:
        """Enqueue for a time; the worker takes the job at once, and holds it until then."""
        record.apply_async((number,), eta=due)
        self._enqueued += 1

    def workers(self, processes: int) -> list[list[str]]:
        """Return the command of each process."""
        options = (
            "--pool=solo", "--loglevel=ERROR",
            "--without-gossip", "--without-mingle", "--without-heartbeat",
        )  # fmt: skip
        return [
            module("celery", "--app=bench.peers.celery", "worker", *options, f"--hostname=worker{number}@%h")
            for number in range(processes)
        ]

    def finished(self) -> int:
        """Return how many jobs the broker no longer holds."""
        return self._enqueued - self.waiting()

    def waiting(self) -> int:
        """Return how many jobs the broker holds, acknowledged by nobody."""
        return int(self._redis.llen(_QUEUE)) + int(self._redis.hlen("unacked"))

    def close(self) -> None:
        """End Redis."""
        app.close()
        self._redis.close()
        self._server.terminate()
        self._server.wait(10)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


ADAPTER = CeleryAdapter
