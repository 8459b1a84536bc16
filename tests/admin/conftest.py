"""Clients of the admin, each logged in as somebody who may do different things."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from tests.admin.rows import make_user
from tests.support import handler


def _logged_in(name: str, *permissions: str, **fields: object) -> Client:
    client = Client()
    client.force_login(make_user(name, *permissions, **fields))
    return client


@pytest.fixture
def viewer(db) -> Client:
    """Return the client of somebody who may look and not touch."""
    return _logged_in("viewer", "view_job", "view_worker")


@pytest.fixture
def operator(db) -> Client:
    """Return the client of somebody who may retry and cancel."""
    return _logged_in("operator", "view_job", "retry_job", "cancel_job")


@pytest.fixture
def stranger(db) -> Client:
    """Return the client of a member of staff without any of Dilamme's permissions."""
    return _logged_in("stranger")


@pytest.fixture
def superuser(db) -> Client:
    """Return the client of somebody who may do everything."""
    return _logged_in("superuser", is_superuser=True)


def free(**rest: Any) -> None:
    """Take whatever comes."""


def strict(number: int) -> None:
    """Take one number."""


@pytest.fixture
def types() -> Iterator[None]:
    """Have a type that takes any payload, and one that does not."""
    with handler(free, name="free"), handler(strict, name="strict"):
        yield
