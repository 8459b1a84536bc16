"""What runs in a child process of a worker: it takes claims, runs their handlers, and sends back how each has ended.

`workers.isolation` starts it and says when it is to end. It never outlives its worker, not even in the middle of a
handler, and it never touches the row of a job.
"""

import fcntl
import os
import pickle
import resource
import select
import signal
import socket
import sys
import threading
import traceback
import uuid
from pathlib import Path
from typing import Any, NamedTuple

import django

from jobs.claims import Claim
from jobs.context import Context, ReadMetadata, ReadParents
from jobs.outcomes import Outcome
from jobs.registry import registry
from workers import connections, executor

READY = b"ready"
"""The first thing that a child says; anything else is why it could not start."""

_KEEP_CONNECTIONS = 1000  # milliseconds to wait for the next claim before database connections are closed
_LOOK_EVERY = 1000  # milliseconds between two looks at the worker


class Said(NamedTuple):
    """What a handler reports while it runs: a method of `jobs.context.Reports`, and what to call it with."""

    method: str
    arguments: tuple[Any, ...]


class Answer(NamedTuple):
    """How a run has ended, and how many bytes of memory the process has from then on."""

    outcome: Outcome
    memory: int


def main(line: int, lifeline: int, worker: int) -> None:
    """Serve the worker with this process id over the socket `line` until it hangs up; `lifeline` ends with it."""
    for descriptor in (line, lifeline):
        os.set_inheritable(descriptor, False)
    # A service manager stops a service by sending this to each of its processes. Which run ends, the worker says.
    signal.signal(signal.SIGTERM, _stay)
    _die_with(worker, lifeline)
    connection = socket.socket(fileno=line)
    try:
        django.setup()
        from jobs import insights  # noqa: PLC0415  needs the models, which need the line above
    except (Exception, SystemExit) as error:  # noqa: BLE001  whatever an app raises while it is imported
        traceback.print_exc()
        connection.sendall(f"{type(error).__name__}: {error}".encode(errors="replace"))
        sys.exit(1)
    _Line(connection).serve(insights.parent_results, insights.metadata_of)


class _Line:
    """This end of the line to the worker. Any thread of a handler may report over it."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._claims = connection.makefile("rb")
        self._lock = threading.Lock()
        os.register_at_fork(after_in_child=self._let_go)

    def serve(self, read_parents: ReadParents, read_metadata: ReadMetadata) -> None:
        """Run what comes, one after the other."""
        self._connection.sendall(READY)
        while (claim := self._next()) is not None:
            context = Context(claim, read_parents, self, read_metadata)
            outcome = executor.run(registry.find(claim.type), claim, context)
            self._send(Answer(outcome, _memory()))
        connections.close_all()

    def progress(self, job_id: uuid.UUID, attempt: int, done: float, total: float | None, message: str) -> None:
        """Pass on how far an attempt is."""
        self._send(Said("progress", (job_id, attempt, done, total, message)))

    def log(self, job_id: uuid.UUID, attempt: int, text: str) -> None:
        """Pass on a line for the history."""
        self._send(Said("log", (job_id, attempt, text)))

    def _next(self) -> Claim | None:
        """Return the next claim, or None once the worker has hung up."""
        if not _is_readable(self._connection.fileno(), _KEEP_CONNECTIONS):
            connections.close_all()
        try:
            claim: Claim = pickle.load(self._claims)  # noqa: S301  it comes from the process that started this one
        except (EOFError, ConnectionError):
            return None
        return claim

    def _send(self, message: Said | Answer) -> None:
        data = pickle.dumps(message)
        with self._lock:
            self._connection.sendall(data)

    def _let_go(self) -> None:
        """Leave the line to the process that this one was forked from: the worker is to see the end of that one."""
        os.close(self._connection.detach())
        self._lock = threading.Lock()
        if signal.getsignal(signal.SIGTERM) is _stay:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _stay(*_: object) -> None:
    """Ignore a signal. Unlike SIG_IGN this is not passed on to the programs that a handler starts."""


def _die_with(worker: int, lifeline: int) -> None:
    """Have this process and those that its handlers have started killed when their worker is gone."""
    if sys.platform == "linux":  # the kernel does it, whatever holds the interpreter's lock
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgrp())
        fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)

    def watch() -> None:
        # The worker's end of the lifeline may have been inherited by a process that a handler in a thread has forked.
        while os.getppid() == worker and not _is_readable(lifeline, _LOOK_EVERY):
            pass
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=watch, name="dilamme-lifeline", daemon=True).start()


def _is_readable(descriptor: int, milliseconds: int) -> bool:
    """Wait at most so long for data, or for the end of them."""
    poll = select.poll()  # select.select() refuses the high numbers that a worker with many files hands down
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(milliseconds))


def _memory() -> int:
    """Return how many bytes of memory this process has."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:  # not Linux: the most that it ever had
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return pages * resource.getpagesize()
