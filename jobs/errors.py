"""The one family of errors that Dilamme raises on purpose.

Every text names what is wrong, which value it was, and the way out. Nothing here knows a table or a request: a face
turns these into a form error, an HTTP answer or an exit code.
"""

import uuid


class DilammeError(Exception):
    """Base of every error that Dilamme raises on purpose."""


class ConfigurationError(DilammeError):
    """A setting, a registration or the installation is wrong; `manage.py check` shows the same text."""


class UnknownType(DilammeError):
    """No handler is registered under this name."""


class InvalidJob(DilammeError):
    """A job was refused before it was stored. `field` names the part of the request that is wrong."""

    def __init__(self, message: str, *, field: str) -> None:
        super().__init__(message)
        self.field = field


class InvalidPayload(InvalidJob):
    """The payload does not fit the handler, or cannot be stored."""

    def __init__(self, message: str, *, field: str = "payload") -> None:
        super().__init__(message, field=field)


class UnknownDependency(InvalidJob):
    """A job was to wait for a job that does not exist."""

    def __init__(self, message: str) -> None:
        super().__init__(message, field="dependency_ids")


class UniqueKeyHeld(InvalidJob):
    """A job was to be made whose unique key another one holds: `job_id`."""

    def __init__(self, message: str, job_id: uuid.UUID | None) -> None:
        super().__init__(message, field="unique_key")
        self.job_id = job_id


class InvalidWorkflow(InvalidJob):
    """A graph of jobs was refused before any of it was stored: a cycle, an unknown name, too many jobs."""


class SeriesNotFound(DilammeError):
    """No series has this name."""


class JobNotFound(DilammeError):
    """No job has this id."""


class WorkflowNotFound(DilammeError):
    """No job belongs to a workflow with this id."""


class TransitionRefused(DilammeError):
    """The job is not in a state from which the wanted change is possible."""


class DatabaseAway(DilammeError):
    """PostgreSQL could not be reached, or ended the connection; the same call may succeed later."""


class SpoolFull(DatabaseAway):
    """The database is away, and the spool of this process may not grow."""

    def __init__(self, count: int, size: int, limit: int) -> None:
        super().__init__(
            f"The database is away, and the spool of this process is full: it keeps {count:,} records of {size:,} "
            f"bytes, and DILAMME['SPOOL_LIMIT'] is {limit:,}. Try again when the database is back."
        )


class SpoolFailed(DatabaseAway):
    """The spool cannot be used: its directory or its disk refuses."""


class Snooze(DilammeError):
    """Raised by a handler that wants to be called again in `seconds`, without having spent an attempt."""

    def __init__(self, seconds: float, reason: str = "") -> None:
        super().__init__(reason or f"Call again in {seconds} s.")
        self.seconds = seconds
        self.reason = reason


class Abort(DilammeError):
    """Raised by a handler for which another attempt makes no sense: the job is a dead letter, for this reason."""


class Retry(DilammeError):
    """Raised by a handler whose attempt failed, and that says itself in how many seconds the next one follows."""

    def __init__(self, after: float, reason: str = "") -> None:
        super().__init__(reason or f"Try again in {after} s.")
        self.after = after


class JobCancelled(DilammeError):
    """Raised inside a handler by `ctx.check()` once somebody asked for its cancellation."""
