"""Fixtures for the tests of the REST API: clients with and without a key, and types to make jobs of."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from tests.support import handler

KEY = "a-key-that-only-the-tests-know"


def free(**rest: Any) -> None:
    """Take whatever comes."""


def strict(number: int, word: str = "") -> None:
    """Take two arguments and no others."""


@pytest.fixture(autouse=True)
def _types() -> Iterator[None]:
    """Have a type that takes any payload, and one that does not."""
    with handler(free, name="free"), handler(strict, name="strict", max_attempts=1):
        yield


@pytest.fixture
def key() -> str:
    """Return the key that this test run accepts."""
    return KEY


@pytest.fixture
def api(key: str) -> Client:
    """A client with a valid key and, like all of the API's clients, without a session or a CSRF token."""
    return Client(enforce_csrf_checks=True, raise_request_exception=False, headers={"X-API-Key": key})


@pytest.fixture
def stranger() -> Client:
    """A client without a key."""
    return Client(enforce_csrf_checks=True, raise_request_exception=False)
