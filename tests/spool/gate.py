"""A way to the database that can be shut: a relay on a Unix socket, between a Django alias and the server."""

import contextlib
import socket
import tempfile
import threading
from pathlib import Path
from typing import Any

from django.db import connections


class Gate:
    """Open, it passes everything on; shut, it cuts what is connected and refuses what comes."""

    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="gate-")
        self._path = Path(self._directory.name) / ".s.PGSQL.5432"
        self._server: socket.socket | None = None
        self._pairs: list[socket.socket] = []
        self._target = connections["default"].get_connection_params()
        self._before = {name: connections["default"].settings_dict[name] for name in ("HOST", "PORT")}
        self._lead({"HOST": self._directory.name, "PORT": "5432"})
        self.open()

    @property
    def is_shut(self) -> bool:
        """Whether it refuses everything."""
        return self._server is None

    def open(self) -> None:
        """Let connections through."""
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(self._path))
        self._server.listen(64)
        threading.Thread(target=self._accept, args=[self._server], daemon=True).start()

    def shut(self) -> None:
        """Refuse everything."""
        if self._server is not None:
            self._path.unlink()
            self._server.shutdown(socket.SHUT_RDWR)
            self._server.close()
            self._server = None
        for end in self._pairs:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        self._pairs.clear()

    def remove(self) -> None:
        """Lead past it again."""
        self.shut()
        self._lead(self._before)
        self._directory.cleanup()

    def _lead(self, way: dict[str, Any]) -> None:
        """Have the default alias, in all threads to come, take this way."""
        connections["default"].close()
        connections["default"].settings_dict.update(way)
        connections.settings["default"].update(way)

    def _accept(self, server: socket.socket) -> None:
        while True:
            try:
                near, _ = server.accept()
            except OSError:
                return
            far = self._connect()
            self._pairs += [near, far]
            for source, target in ((near, far), (far, near)):
                threading.Thread(target=_relay, args=[source, target], daemon=True).start()

    def _connect(self) -> socket.socket:
        host, port = str(self._target.get("host") or ""), int(self._target.get("port") or 5432)
        if host.startswith("/"):
            far = socket.socket(socket.AF_UNIX)
            far.connect(f"{host}/.s.PGSQL.{port}")
            return far
        return socket.create_connection((host or "localhost", port))


def _relay(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    for end in (source, target):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
    source.close()
