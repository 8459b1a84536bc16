"""The one family of errors that Dilamme raises on purpose.

Every text names what is wrong, which value it was, and the way out. Nothing here knows a table or a request: a face
turns these into a form error, an HTTP answer or an exit code.
"""


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


class JobNotFound(DilammeError):
    """No job has this id."""


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


class JobCancelled(DilammeError):
    """Raised inside a handler by `ctx.check()` once somebody asked for its cancellation."""
