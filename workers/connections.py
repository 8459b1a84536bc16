"""Django's database connections around a handler: what a request gets from Django, a job gets from here.

A connection is kept from one job to the next while its thread is busy, whatever CONN_MAX_AGE says, because opening
one costs more than most jobs; it is closed as soon as the thread is idle, so that a quiet worker holds none. A thread
whose handlers never asked for a connection is not looked at: to ask Django costs more than a job that does little.
"""

import threading
import time
from typing import Any

from django.db import connections, reset_queries
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from django.dispatch import receiver
from psycopg.pq import TransactionStatus


class _Thread(threading.local):
    """What is known of this thread."""

    has_connected = False


_this = _Thread()


@receiver(connection_created, dispatch_uid="dilamme.workers.connections")
def _note_connection(**_: Any) -> None:
    _this.has_connected = True


def before_handler() -> None:
    """Give the handler connections as fresh as a request would get."""
    if not _this.has_connected:
        return
    reset_queries()
    for connection in connections.all(initialized_only=True):
        connection.health_check_done = False  # type: ignore[attr-defined]  # the stubs do not know it


def after_handler() -> str:
    """Leave no transaction open and no broken connection behind; returns a complaint if there was an open one."""
    complaint = ""
    if not _this.has_connected:
        return complaint
    for connection in connections.all(initialized_only=True):
        if connection.connection is None:
            continue
        if _is_in_transaction(connection):
            complaint = f"The handler left a transaction open on the database {connection.alias!r}; it was rolled back."
            _discard(connection)
        elif (connection.errors_occurred and not connection.is_usable()) or _is_worn_out(connection):
            connection.close()
        else:
            connection.errors_occurred = False
    return complaint


def close_all() -> None:
    """Close this thread's connections."""
    if _this.has_connected:
        connections.close_all()
        _this.has_connected = False


def _is_in_transaction(connection: BaseDatabaseWrapper) -> bool:
    if connection.in_atomic_block or connection.autocommit != connection.settings_dict["AUTOCOMMIT"]:
        return True
    return (
        connection.vendor == "postgresql"
        and not connection.connection.closed
        and connection.connection.info.transaction_status != TransactionStatus.IDLE
    )


def _is_worn_out(connection: BaseDatabaseWrapper) -> bool:
    """Whether CONN_MAX_AGE, where it allows a connection to be kept at all, has passed."""
    keeps = bool(connection.settings_dict["CONN_MAX_AGE"])
    return keeps and connection.close_at is not None and time.monotonic() >= connection.close_at


def _discard(connection: BaseDatabaseWrapper) -> None:
    """Throw the connection away with all that Django believes about its transaction."""
    connection.connection.close()
    del connections[connection.alias]
