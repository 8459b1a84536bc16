"""What the handlers meet in tests: servers stopped after each test, names that resolve as told, directories."""

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.handlers.servers import RawServer, Receiver, raw_server


@pytest.fixture
def default_settings(settings: Any) -> None:
    """Leave every setting of Dilamme at its default, whatever the reference host sets."""
    settings.DILAMME = {}


@pytest.fixture
def private_allowed(settings: Any) -> None:
    """Let webhooks reach loopback."""
    settings.DILAMME = {**settings.DILAMME, "WEBHOOK_ALLOW_PRIVATE": True}


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Yield an HTTP receiver on 127.0.0.1."""
    with Receiver.running("127.0.0.1") as receiver:
        yield receiver


@pytest.fixture
def other_receiver() -> Iterator[Receiver]:
    """Yield an HTTP receiver on another address of this machine."""
    with contextlib.ExitStack() as stack:
        try:
            receiver = stack.enter_context(Receiver.running("127.0.0.2"))
        except OSError:
            pytest.skip("this system has no address 127.0.0.2")
        yield receiver


@pytest.fixture(name="raw_server")
def raw_server_fixture() -> Iterator[RawServer]:
    """Yield a function that starts a server which runs a script on each socket, and returns its port."""
    with contextlib.ExitStack() as stack:
        yield lambda script: stack.enter_context(raw_server(script))


@pytest.fixture
def closed_port() -> int:
    """Return a port of 127.0.0.1 on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[list[str]]]:
    """Return a table of name: answers, which the resolver gives one after another, the last one for ever."""
    table: dict[str, list[list[str]]] = {}
    real = socket.getaddrinfo

    def resolve(host: str, port: int, *args: Any, **kwargs: Any) -> list[Any]:
        if host not in table:
            return real(host, port, *args, **kwargs)
        addresses = table[host].pop(0) if len(table[host]) > 1 else table[host][0]
        return [entry for address in addresses for entry in real(address, port, *args, **kwargs)]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    return table


@pytest.fixture
def log_dir(tmp_path: Path, settings: Any) -> Path:
    """Return a directory below which logs may be read; its parent may not."""
    directory = tmp_path / "logs"
    directory.mkdir()
    settings.DILAMME = {**settings.DILAMME, "LOG_DIRECTORIES": (str(directory),)}
    return directory
