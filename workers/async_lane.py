"""One event loop on a thread of its own, for async handlers."""

import asyncio
import logging
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING

from asgiref.sync import sync_to_async
from django.db.backends.signals import connection_created

from jobs.outcomes import Failed, Outcome
from workers import connections, executor

if TYPE_CHECKING:
    from workers.pool import Run

logger = logging.getLogger("dilamme.worker")

HANDLER_THREAD = "dilamme-handler"
_BLOCKED_AFTER = 1.0  # seconds without a turn after which the loop counts as blocked
_KEEP_CONNECTIONS = 1.0  # seconds after the last async job before database connections are closed


class AsyncLane:
    """Starts runs as tasks and calls `ended(run, outcome)` on the loop's thread. The loop begins with the first run."""

    def __init__(self, ended: "Callable[[Run, Outcome], None]") -> None:
        self._ended = ended
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._tasks: dict[Run, asyncio.Task[Outcome]] = {}
        self._closing = False
        self._pinged = self._ponged = 0.0
        self._uses_database = False
        self._closer: asyncio.TimerHandle | None = None

    def start(self, run: "Run") -> None:
        """Run an async handler."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._run_loop, name="dilamme-async", daemon=True)
            self._thread.start()
            connection_created.connect(self._note_database)
        self._loop.call_soon_threadsafe(self._create_task, run)

    def cancel(self, run: "Run") -> None:
        """Cancel the task of a run, at its next await."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._cancel_task, run)

    def blocked_by(self) -> str:
        """Return where the loop is stuck, or an empty string; call it about once a second."""
        if self._loop is None or self._thread is None:
            return ""
        now = time.monotonic()
        if self._pinged > self._ponged:
            if now - self._pinged < _BLOCKED_AFTER:
                return ""
            frame = sys._current_frames().get(self._thread.ident or 0)  # noqa: SLF001  the only way to look into a thread
            where = traceback.extract_stack(frame)[-1] if frame else None
            place = f"{where.filename}:{where.lineno} in {where.name}" if where else "an unknown place"
            suspects = ", ".join(sorted({f"{run.claim.type} {run.claim.id}" for run in list(self._tasks)}))
            return f"for {now - self._pinged:.1f} s at {place}; async jobs on it: {suspects}"
        self._pinged = now
        self._loop.call_soon_threadsafe(self._pong)
        return ""

    def close(self) -> None:
        """End the loop; tasks that are left are cancelled and get a moment to clean up."""
        if self._loop is None or self._thread is None:
            return
        self._closing = True
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=5)
        connection_created.disconnect(self._note_database)

    def _run_loop(self) -> None:
        loop = self._loop
        assert loop is not None  # noqa: S101  set by whoever starts the thread
        asyncio.set_event_loop(loop)
        while not self._closing:
            try:
                loop.run_forever()
            except BaseException:  # a task that a handler spawned may raise SystemExit through the loop
                logger.exception("Something left the event loop that a handler started; the loop goes on.")
        leftover = asyncio.all_tasks(loop)
        for task in leftover:
            task.cancel()
        if leftover:
            loop.run_until_complete(asyncio.wait(leftover, timeout=1))
        if self._uses_database:
            loop.run_until_complete(sync_to_async(connections.close_all)())
        loop.close()

    def _create_task(self, run: "Run") -> None:
        assert self._loop is not None  # noqa: S101  it runs this
        if self._closer is not None:
            self._closer.cancel()
            self._closer = None
        work = executor.run_async(run.kind, run.claim, run.context, lambda: self._uses_database)
        task = self._loop.create_task(work, name=f"{run.claim.type} {run.claim.id}")
        self._tasks[run] = task
        task.add_done_callback(lambda done: self._task_done(run, done))
        if run.kind is not None and run.kind.interruptible:
            run.context.interrupt_with(lambda: self.cancel(run))
        if run.is_settled:
            task.cancel()

    def _cancel_task(self, run: "Run") -> None:
        if task := self._tasks.get(run):
            task.cancel()

    def _task_done(self, run: "Run", task: asyncio.Task[Outcome]) -> None:
        """Pass the outcome on; a task that was cancelled before its first step has none of its own."""
        del self._tasks[run]
        cancelled = task.cancelled() or task.exception() is not None
        self._ended(run, Failed("Cancelled before its first step.") if cancelled else task.result())
        if not self._tasks and self._uses_database and self._loop is not None and not self._closing:
            self._closer = self._loop.call_later(_KEEP_CONNECTIONS, self._close_connections)

    def _close_connections(self) -> None:
        if self._loop is not None and not self._tasks:
            self._uses_database = False
            self._closing_connections = self._loop.create_task(sync_to_async(connections.close_all)())

    def _note_database(self, **_: object) -> None:
        """Django opened a connection; unless a sync handler did, it is in the thread that serves this loop."""
        if not threading.current_thread().name.startswith(HANDLER_THREAD):
            self._uses_database = True

    def _pong(self) -> None:
        self._ponged = time.monotonic()
