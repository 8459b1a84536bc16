"""The child processes of a worker, in which the handlers declared with `isolation="process"` run.

It owns these processes: starts one when all others are busy, lends each to one run at a time, kills it when that run
is to stop, and replaces those that are dead or worn out. It never runs a handler itself (`workers.child` does), and
costs a worker without such types nothing.
"""

import contextlib
import functools
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable

from jobs.claims import Claim
from jobs.conf import settings
from jobs.context import Context, Reports
from jobs.outcomes import Cancelled, Failed, Outcome, Released
from workers import child as protocol

_START_LIMIT = 60.0  # seconds in which a child must have imported the project
_LEAVE_LIMIT = 5.0  # seconds for what a child does at its exit, before it is killed


class Children:
    """The children of one worker: as many as isolated handlers have run at once. Safe to call from any thread."""

    def __init__(self, reports: Reports | None) -> None:
        self._reports = reports
        self._lock = threading.Lock()
        self._idle: list[_Child] = []  # the latest used is used first, so that few are kept warm
        self._is_closed = False

    def run(self, claim: Claim, context: Context, begun: Callable[[], None]) -> Outcome:
        """Have a child run a claim, and return how it ended; `begun` is called once the child is there. Never raises.

        When the context is told to stop, the child is killed, and this returns as soon as it is dead.
        """
        try:
            child = self._take()
        except OSError as error:
            return _not_started(str(error))
        child.lend(context)
        try:
            child.get_ready()
            begun()
            outcome = child.ask(claim, self._reports)
        except Exception as error:  # noqa: BLE001  whatever it is, this child is of no more use
            child.end()
            return _outcome_without_answer(child, context, error)
        self._give_back(child)
        return outcome

    def close(self) -> None:
        """End the children that are idle, and from now on those that become so."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for leaving in [_dismiss(child) for child in idle]:
            leaving.join()

    def _take(self) -> "_Child":
        """Return a living child that nobody uses, or a new one."""
        while True:
            with self._lock:
                child = self._idle.pop() if self._idle else None
            if child is None:
                return _Child()
            if child.is_alive:
                return child
            child.end()

    def _give_back(self, child: "_Child") -> None:
        if not child.take_back():  # killed between its answer and now
            child.end()
            return
        is_done = child.is_worn_out
        with self._lock:
            if not is_done and not self._is_closed:
                self._idle.append(child)
                return
        _dismiss(child)


class _Child:
    """One child process, as its worker sees it. It belongs to one thread at a time; only a kill comes from others."""

    def __init__(self) -> None:
        self._connection, theirs = socket.socketpair()
        their_lifeline, self._lifeline = os.pipe()
        try:
            self._process = _start(theirs.fileno(), their_lifeline)
        except OSError:
            self._connection.close()
            os.close(self._lifeline)
            raise
        finally:
            theirs.close()
            os.close(their_lifeline)
        self._messages = self._connection.makefile("rb")
        self._lock = threading.Lock()
        self._borrower: Context | None = None
        self._was_killed = False
        self._runs = 0
        self._memory = 0  # bytes
        self.is_ready = False

    @property
    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None

    @property
    def is_worn_out(self) -> bool:
        """Whether it is to be replaced by a new one."""
        runs, megabytes = settings.ISOLATION_MAX_JOBS, settings.ISOLATION_MAX_MEMORY
        has_grown = megabytes is not None and self._memory > megabytes * 1024 * 1024
        return has_grown or (runs is not None and self._runs >= runs)

    @property
    def ending(self) -> str:
        """How the process has ended."""
        code = self._process.returncode
        return f"exit code {code}" if code >= 0 else f"signal {-code} ({signal.strsignal(-code)})"

    def lend(self, context: Context) -> None:
        """Let this run have the child: when it is told to stop, the child is killed."""
        self._borrower = context
        context.interrupt_with(functools.partial(self._kill_for, context))

    def take_back(self) -> bool:
        """Take the child from its run, and return whether it still lives; from now on nobody kills it for that run."""
        with self._lock:
            self._borrower = None
            return not self._was_killed

    def get_ready(self) -> None:
        """Wait until the project is imported there; raises with the reason if it cannot be."""
        if self.is_ready:
            return
        self._connection.settimeout(_START_LIMIT)
        try:
            said = self._connection.recv(4096)
        except TimeoutError:
            raise TimeoutError(f"it was not ready within {_START_LIMIT:g} s") from None
        if said != protocol.READY:
            raise ConnectionError(said.decode(errors="replace"))
        self._connection.settimeout(None)
        self.is_ready = True

    def ask(self, claim: Claim, reports: Reports | None) -> Outcome:
        """Have a claim run, pass on what its handler reports, and return how it ended."""
        self._connection.sendall(pickle.dumps(claim))
        while isinstance(message := pickle.load(self._messages), protocol.Said):  # noqa: S301  from our own child
            if reports is not None:
                getattr(reports, message.method)(*message.arguments)
        answer: protocol.Answer = message
        self._runs += 1
        self._memory = answer.memory
        return answer.outcome

    def leave(self) -> None:
        """End it in order: it goes when its line is cut, after what its exit hooks have to do."""
        self._hang_up()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_LEAVE_LIMIT)
        self.end()

    def end(self) -> None:
        """Make sure that the process is gone, and with it those that it has started, unless it left in order."""
        self.take_back()
        if self._process.returncode is None:
            self._kill()  # after a death of its own too: how it died stands, and what it has started goes as well
            self._process.wait()
        self._hang_up()
        os.close(self._lifeline)

    def _kill_for(self, context: Context) -> None:
        with self._lock:
            if self._borrower is context:
                self._kill()

    def _kill(self) -> None:
        """Send SIGKILL; SIGTERM is ignored there. It is only called before the process is waited for."""
        self._was_killed = True
        for send in (os.killpg, os.kill):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                send(self._process.pid, signal.SIGKILL)

    def _hang_up(self) -> None:
        self._messages.close()
        self._connection.close()


def _start(line: int, lifeline: int) -> "subprocess.Popen[bytes]":
    """Start a Python that imports what this one does. Its process group is its own: no Ctrl-C, and one kill for all."""
    code = (
        f"import sys; sys.path[:] = {[str(path) for path in sys.path]!r}; sys.argv[:] = {sys.argv!r}; "
        f"from {protocol.__name__} import main; main({line}, {lifeline}, {os.getpid()})"
    )
    return subprocess.Popen(  # noqa: S603  our own code
        [sys.executable, "-c", code], stdin=subprocess.DEVNULL, pass_fds=(line, lifeline), process_group=0
    )


def _dismiss(child: _Child) -> threading.Thread:
    """Have a child leave while nobody waits for it."""
    leaving = threading.Thread(target=child.leave, name="dilamme-dismissal", daemon=True)
    leaving.start()
    return leaving


def _outcome_without_answer(child: _Child, context: Context, error: Exception) -> Outcome:
    if context.cancelled:
        return Cancelled("Cancelled: its process was ended.")
    if not child.is_ready:
        return _not_started(str(error) or child.ending)
    return Failed(f"The process of this handler died: {child.ending}.")


def _not_started(reason: str) -> Outcome:
    text = f"The process for this handler could not be started: {reason.rstrip('.')}."
    return Released(text, delay=settings.UNKNOWN_TYPE_DELAY)
