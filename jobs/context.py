"""What a handler may know and do about its own run: the `ctx` that it gets when it asks for one.

A context never touches the database: the worker that made it answers for it.
"""

import uuid

from jobs.errors import JobCancelled


class Context:
    """Given to a handler whose first parameter is called `ctx` (or is annotated with this class)."""

    __slots__ = ("_is_stopped", "attempt", "job_id", "queue", "type")

    def __init__(self, *, job_id: uuid.UUID, type: str, queue: str, attempt: int) -> None:  # noqa: A002  the job's word
        self.job_id = job_id
        self.type = type
        self.queue = queue
        self.attempt = attempt  # how often this job has been claimed, this run included
        self._is_stopped = False  # a bare flag: nobody waits for it, and one is made for every run

    @property
    def cancelled(self) -> bool:
        """Whether this run is no longer wanted: cancelled by somebody, or past its timeout."""
        return self._is_stopped

    def check(self) -> None:
        """Raise `JobCancelled` once this run is no longer wanted; call it where stopping is safe."""
        if self._is_stopped:
            raise JobCancelled(f"Job {self.job_id} was asked to stop.")

    def stop(self) -> None:
        """Tell the handler to stop (called by the worker)."""
        self._is_stopped = True
