"""Fixtures for tests that drive the lifecycle without a worker."""

from collections.abc import Iterator
from typing import Any

import pytest

from jobs.queries import WorkerSession
from tests.lifecycle.graphs import Turns
from tests.support import handler


def free(**rest: Any) -> None:
    """Take whatever comes."""


@pytest.fixture
def turns(transactional_db: None) -> Iterator[Turns]:
    """A worker's turns, and a type `free` whose jobs have one attempt."""
    session = WorkerSession()
    with handler(free, name="free", max_attempts=1):
        yield Turns(session)
    session.close()
