"""Requests that may be repeated: what one with an idempotency key was answered is kept, and answered again.

A key is taken in the transaction of what the request makes. So a rollback keeps nothing, and of two requests at once
the second waits for the end of the first. What a request means, and how its answer looks, is the caller's business.
"""

import hashlib
from collections.abc import Callable
from typing import NamedTuple

from jobs.conf import settings
from jobs.errors import DilammeError
from jobs.queries import DjangoSession, Session

_BATCH = 1000  # keys forgotten in one statement


class KeyReused(DilammeError):
    """An idempotency key came with another request than the one that it was first sent with."""


class Reply(NamedTuple):
    """What a request was answered, as it was sent."""

    status: int
    text: str
    is_repeated: bool = False


def once(client: str, key: str, request: bytes, act: Callable[[], Reply]) -> Reply:
    """Return what `act` answers, or what was answered when this client first sent this key; in one transaction.

    Raises `KeyReused` if that was another request. Whatever `act` raises leaves the key free. A key holds for
    `IDEMPOTENCY_RETENTION` seconds.
    """
    session, digest = DjangoSession(), hashlib.sha256(request).hexdigest()
    with session.transaction():
        claimed = session.fetch(
            "claim_idempotency", client=client, key=key, digest=digest, retention=settings.IDEMPOTENCY_RETENTION
        )
        if not claimed:
            return _kept(session, client, key, digest)
        reply = act()
        session.fetch("keep_answer", id=claimed[0][0], status=reply.status, answer=reply.text)
        return reply


def prune_idempotency(session: Session) -> int:
    """Forget the keys that are older than the retention, in batches; returns how many there were."""
    count = 0
    while pruned := len(session.fetch("prune_idempotency", retention=settings.IDEMPOTENCY_RETENTION, room=_BATCH)):
        count += pruned
    return count


def _kept(session: Session, client: str, key: str, digest: str) -> Reply:
    ((first_digest, status, text),) = session.fetch("kept_answer", client=client, key=key)
    if digest != first_digest:
        raise KeyReused(
            f"The idempotency key {key!r} was sent with another request before; repeat that one unchanged, or use a "
            f"new key for a new request."
        )
    return Reply(status, text, is_repeated=True)
