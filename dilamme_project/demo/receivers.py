"""The two receivers of the demo on loopback: an HTTP server for the webhook, an SMTP server for the mail."""

import json
import socket
import threading
from email import message_from_bytes
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session


class WebhookReceiver:
    """Answers every POST with 200 and keeps its JSON."""

    def __init__(self) -> None:
        self.received: list[Any] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                receiver.received.append(json.loads(body))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Keep the demo's screen clean."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        """Where to deliver to."""
        return f"http://127.0.0.1:{self._server.server_port}/summaries"

    def start(self) -> None:
        """Begin to receive."""
        self._thread.start()

    def stop(self) -> None:
        """Stop, and free the port."""
        self._server.shutdown()
        self._server.server_close()


class MailReceiver:
    """Accepts every mail and keeps it."""

    def __init__(self) -> None:
        self.received: list[Message] = []
        self._controller = Controller(self, hostname="127.0.0.1", port=free_port())

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: ARG002, N802  aiosmtpd's
        """Keep a mail; called by the SMTP server."""
        self.received.append(message_from_bytes(bytes(envelope.content or b"")))
        return "250 OK"

    @property
    def port(self) -> int:
        """Where to deliver to."""
        return int(self._controller.port)

    def start(self) -> None:
        """Begin to receive."""
        self._controller.start()

    def stop(self) -> None:
        """Stop, and free the port."""
        self._controller.stop()


def free_port(wanted: int = 0) -> int:
    """Return `wanted` if that port is free on loopback, and any free one otherwise."""
    for port in (wanted, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise OSError("No free port on 127.0.0.1.")
