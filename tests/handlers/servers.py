"""Real servers for the handlers to talk to, and a delivery whose deadline and permitted addresses a test sets."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from workers.handlers import network, webhook

SHORT = 0.5  # seconds: a deadline that a test can wait for
SLACK = 5.0  # seconds later at which a loaded machine may notice; drips last much longer

RawServer = Callable[[Callable[[socket.socket], object]], int]


def deliver(
    url: str,
    payload: Any = None,
    method: Any = "POST",
    headers: dict[str, str] | None = None,
    *,
    deadline: float = 10,
    permitted: set[str] | None = None,
    tls: Any = None,
) -> dict[str, Any]:
    """Deliver within `deadline` seconds, to the addresses that `permitted` names, or to any."""

    def judge(address: Any) -> str | None:
        return None if permitted is None or str(address) in permitted else "forbidden"

    backend = network.GuardedBackend(network.Deadline(deadline), judge)
    return webhook.deliver(url, payload, method, headers, network=backend, tls=tls or webhook.default_tls())


@contextlib.contextmanager
def in_time() -> Iterator[None]:
    """Fail if the block takes much longer than the short deadline."""
    started = time.monotonic()
    yield
    assert time.monotonic() - started < SHORT + SLACK


@dataclass
class Answer:
    """What a receiver says to one path."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b"thanks"


@dataclass
class Seen:
    """One request, as it arrived."""

    method: str
    path: str
    headers: dict[str, str]  # names in lower case
    body: bytes


class Receiver:
    """An HTTP server that answers as told, and remembers what it was sent."""

    def __init__(self, host: str) -> None:
        self.host = host
        self.answers: dict[str, Answer] = {}
        self.seen: list[Seen] = []
        self.server = _Server((host, 0), self._handler())
        self.port = self.server.server_address[1]

    def url(self, path: str = "/", host: str | None = None) -> str:
        """Return the http URL of `path`, under another name for this machine if `host` is given."""
        return f"http://{host or self.host}:{self.port}{path}"

    @classmethod
    @contextlib.contextmanager
    def running(cls, host: str) -> "Iterator[Receiver]":
        """Run a receiver on a free port of `host`."""
        receiver = cls(host)
        thread = threading.Thread(target=receiver.server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield receiver
        finally:
            receiver.server.shutdown()
            receiver.server.server_close()
            thread.join()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                headers = {name.lower(): value for name, value in self.headers.items()}
                receiver.seen.append(Seen(self.command, self.path, headers, body))
                answer = receiver.answers.get(self.path.partition("?")[0], Answer())
                self.send_response(answer.status)
                for name, value in {"Content-Length": str(len(answer.body)), **answer.headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(answer.body)

            do_GET = do_POST = do_PUT = do_PATCH = answer  # noqa: N815 - http.server finds them by name

            def log_message(self, *args: Any) -> None:
                """Keep the output of the tests clean."""

        return Handler


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *args: Any) -> None:
        """Say nothing: a client that breaks off is what many tests are about."""


def read_request(connection: socket.socket) -> None:
    """Read one request to its end: closing a connection with unread bytes resets it."""
    with connection.makefile("rb") as stream:
        length = 0
        while (line := stream.readline()).strip():
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        stream.read(length)


@contextlib.contextmanager
def raw_server(script: Callable[[socket.socket], object]) -> Iterator[int]:
    """Serve every connection to the port yielded with `script` on its socket, then close it.

    At the end, a connection that `script` still holds is cut off under it.
    """
    listener = socket.create_server(("127.0.0.1", 0))
    stopping = threading.Event()
    accepted: list[socket.socket] = []

    def serve() -> None:
        while not stopping.is_set():
            with contextlib.suppress(OSError):
                connection, _ = listener.accept()
                accepted.append(connection)
                with connection:
                    script(connection)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        stopping.set()
        for sock in [listener, *accepted]:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def read_line(connection: socket.socket) -> bytes:
    """Read one line."""
    with connection.makefile("rb") as stream:
        return stream.readline()


@contextlib.contextmanager
def silent_listener(host: str, port: int) -> Iterator[None]:
    """Listen where every further connection hangs: the queue of those not yet accepted is full."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind((host, port))
        listener.listen(0)
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex((host, port))
        yield
