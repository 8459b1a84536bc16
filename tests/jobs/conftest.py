"""Fixtures for tests that make jobs."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connections

from jobs import Task
from tests.support import handler


def free(**rest: Any) -> None:
    """Take whatever comes."""


@pytest.fixture
def free_type() -> Iterator[Task[..., None]]:
    """Have a type called `free` that takes any payload."""
    with handler(free, name="free") as task:
        yield task


@pytest.fixture
async def async_db(transactional_db: None) -> AsyncIterator[None]:
    """Let async code use the database, and close the connection of the thread that did it for it."""
    yield
    await sync_to_async(connections.close_all)()
