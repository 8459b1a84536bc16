"""Keeps several worker processes running: starts them, starts again those that die, passes signals on.

Each child is a `runworker` of its own, so the supervisor holds no connection and knows no job. A child notices when
its supervisor is gone and stops in order.
"""

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable

logger = logging.getLogger("dilamme.supervisor")

_LOOK_EVERY = 0.2  # seconds between two looks at the children
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0  # seconds before a child that died is started again
_STEADY_AFTER = 60.0  # seconds after which a child counts as running well


class Supervisor:
    """Runs the command line that started this process, once for each child."""

    def __init__(self, processes: int) -> None:
        self._slots = [_Slot(_child_command()) for _ in range(processes)]
        self._signals = 0

    def run(self) -> int:
        """Keep the children running until told to stop; returns the highest of their exit codes."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._pass_on)
        for slot in self._slots:
            slot.start()
        while not all(slot.is_over for slot in self._slots):
            for slot in self._slots:
                slot.look_after(restart=not self._signals)
            time.sleep(_LOOK_EVERY)
        return max(slot.code for slot in self._slots)

    def _pass_on(self, *_: object) -> None:
        self._signals += 1
        for slot in self._slots:
            slot.terminate()


class _Slot:
    """One child, and its successors."""

    def __init__(self, command: list[str]) -> None:
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None
        self._started = self._start_at = 0.0
        self._pause = _FIRST_PAUSE
        self.code = 0
        self.is_over = False

    def start(self) -> None:
        # Its own process group: Ctrl-C reaches the supervisor only, which passes it on once.
        self._process = subprocess.Popen(self._command, process_group=0)  # noqa: S603  our own command line
        self._started = time.monotonic()

    def terminate(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)

    def look_after(self, *, restart: bool) -> None:
        """Notice the child's end: in order it is over, otherwise it is started again after a pause."""
        now = time.monotonic()
        if self._process is not None:
            if (code := self._process.poll()) is None:
                return
            self._process = None
            self.code = 0 if code == 0 else 1
            if code == 0 or not restart:
                self.is_over = True
                return
            self._pause = _FIRST_PAUSE if now - self._started > _STEADY_AFTER else min(self._pause * 2, _LONGEST_PAUSE)
            self._start_at = now + self._pause
            logger.error("A worker process ended with code %s; starting another in %.1f s.", code, self._pause)
        elif not restart:
            self.is_over = True
        elif not self.is_over and now >= self._start_at:
            self.start()


def end_with_parent(parent: int, stop: Callable[[], None]) -> None:
    """Call `stop` once the process `parent` is no longer this one's parent."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        stop()

    threading.Thread(target=watch, name="dilamme-parent", daemon=True).start()


def _child_command() -> list[str]:
    """Return this process's command line for one process."""
    arguments = list(sys.argv)
    for i, argument in enumerate(arguments):
        if argument == "--processes":
            del arguments[i : i + 2]
            break
        if argument.startswith("--processes="):
            del arguments[i]
            break
    return [sys.executable, *arguments, "--supervisor", str(os.getpid())]
