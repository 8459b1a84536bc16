"""Who may watch, asked of the session store and the user table each time: a socket may outlive a login.

It knows sessions and permissions, and nothing of sockets but their close codes.
"""

from importlib import import_module
from typing import Any

from channels.auth import get_user
from channels.db import database_sync_to_async
from django.conf import settings as django_settings

UNAUTHENTICATED, FORBIDDEN = 4401, 4403


async def refusal(scope: dict[str, Any]) -> int | None:
    """Return the close code for whoever must not watch (any more), or None for staff who may view jobs."""
    store = import_module(django_settings.SESSION_ENGINE).SessionStore
    user = await get_user({"session": store(scope["session"].session_key)})
    if not user.is_authenticated:
        return UNAUTHENTICATED
    allowed = user.is_staff and await database_sync_to_async(user.has_perm)("dilamme.view_job")
    return None if allowed else FORBIDDEN
