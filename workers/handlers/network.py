"""The way out for webhooks: one deadline for everything, no connection to an address that was not checked.

It plugs into httpcore as its network backend, so every connection, also that of a redirect, comes through
here: the name is resolved once, every address in the answer is judged, and the socket goes to a judged
address, never to the name. It knows sockets, names and time, and never HTTP: what is sent, and what an answer
means, is decided elsewhere.
"""

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from ipaddress import ip_address

import httpcore

from workers.handlers.addresses import IPAddress
from workers.handlers.errors import (
    WebhookAddressForbidden,
    WebhookHostUnknown,
    WebhookTimeout,
    WebhookTlsFailed,
    WebhookUnreachable,
)


class Deadline:
    """The end of one delivery, `seconds` from now on the monotonic clock."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._end = time.monotonic() + seconds

    def remaining(self, doing: str) -> float:
        """Return the seconds left, more than 0; raise `WebhookTimeout`, which names `doing`, if none are."""
        if (left := self._end - time.monotonic()) <= 0:
            raise self.exceeded(doing)
        return left

    def exceeded(self, doing: str) -> WebhookTimeout:
        """Return the error for time that ran out while `doing`, such as "waiting for example.com:443"."""
        return WebhookTimeout(
            f"The webhook was not answered within {self._seconds:g} s: time ran out while {doing}. "
            "Let the receiver answer first and work afterwards, or check that it is up."
        )


class GuardedBackend(httpcore.NetworkBackend):
    """Opens connections for one delivery.

    `refusal` says why an address may not be reached, or None if it may. Raises only errors of this package,
    except for `httpcore.WriteError`, which httpcore needs to go on and read an early answer.
    """

    def __init__(self, deadline: Deadline, refusal: Callable[[IPAddress], str | None]) -> None:
        self._deadline = deadline
        self._refusal = refusal

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ARG002 - the deadline of the delivery rules instead
        local_address: str | None = None,  # noqa: ARG002 - part of the interface, never set here
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,  # noqa: ARG002 - as above
    ) -> httpcore.NetworkStream:
        """Return a stream to the first address of `host` that answers.

        Raises `WebhookHostUnknown`, `WebhookAddressForbidden`, `WebhookUnreachable` or `WebhookTimeout`.
        """
        peer = f"{host}:{port}"
        addresses = self._resolve(host, port)
        self._check(host, addresses)
        sock = self._connect(addresses, port, peer)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return DeadlineStream(sock, peer, self._deadline)

    def _resolve(self, host: str, port: int) -> list[str]:
        # getaddrinfo has no timeout: a daemon thread can be left behind with it when time runs out.
        answer: Future[list[str]] = Future()
        arguments = (host, port, answer)
        threading.Thread(target=_look_up, args=arguments, name="webhook-dns", daemon=True).start()
        doing = f"resolving {host}"
        try:
            return answer.result(self._deadline.remaining(doing))
        except TimeoutError:
            raise self._deadline.exceeded(doing) from None
        except (OSError, UnicodeError) as error:
            raise WebhookHostUnknown(
                f"The webhook host {host!r} could not be resolved: {_reason(error)}. "
                "Check its spelling, and the DNS of the machine that runs the worker."
            ) from error

    def _check(self, host: str, addresses: list[str]) -> None:
        for address in addresses:
            if kind := self._refusal(ip_address(address)):
                raise WebhookAddressForbidden(
                    f"The webhook host {host!r} leads to {address}, a {kind} address; nothing was sent. "
                    'Use a public one, or set DILAMME["WEBHOOK_ALLOW_PRIVATE"] = True to allow every address.'
                )

    def _connect(self, addresses: list[str], port: int, peer: str) -> socket.socket:
        doing = f"connecting to {peer}"
        failure: OSError | None = None
        for tried, address in enumerate(addresses):
            # An even share of what is left: one silent address must not use up the time of the others.
            share = self._deadline.remaining(doing) / (len(addresses) - tried)
            try:
                return socket.create_connection((address, port), timeout=share)
            except OSError as error:
                failure = error
        if isinstance(failure, TimeoutError):
            raise self._deadline.exceeded(doing) from failure
        raise WebhookUnreachable(
            f"No connection to the webhook host {peer} ({', '.join(addresses)}): {_reason(failure)}. "
            "Check the port, and that the receiver is up and lets this machine in."
        ) from failure


class DeadlineStream(httpcore.NetworkStream):
    """One connection; its handshake, reads and writes all end by one deadline, however slowly bytes drip."""

    def __init__(self, sock: socket.socket, peer: str, deadline: Deadline) -> None:
        self._sock = sock
        self._peer = peer
        self._deadline = deadline
        self._answered = False

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002 - as above
        """Return up to `max_bytes` bytes; raises `WebhookTimeout` or `WebhookUnreachable`."""
        doing = f"waiting for {self._peer}"
        try:
            self._sock.settimeout(self._deadline.remaining(doing))
            received = self._sock.recv(max_bytes)
        except TimeoutError:
            raise self._deadline.exceeded(doing) from None
        except OSError as error:
            raise self._broken(_reason(error)) from error
        if not received and not self._answered:
            raise self._broken("it was closed without an answer")
        self._answered = True
        return received

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002 - as above
        """Send all of `buffer`; raises `WebhookTimeout` or `httpcore.WriteError`."""
        doing = f"sending to {self._peer}"
        rest = memoryview(buffer)
        try:
            while rest:
                self._sock.settimeout(self._deadline.remaining(doing))
                rest = rest[self._sock.send(rest) :]
        except TimeoutError:
            raise self._deadline.exceeded(doing) from None
        except OSError as error:
            raise httpcore.WriteError(_reason(error)) from error

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002 - as above
    ) -> httpcore.NetworkStream:
        """Return this stream, encrypted; the certificate has to be for `server_hostname`, not the address.

        Raises `WebhookTimeout` or `WebhookTlsFailed`; the connection is closed then.
        """
        doing = f"agreeing on TLS with {self._peer}"
        try:
            self._sock.settimeout(self._deadline.remaining(doing))
            self._sock = ssl_context.wrap_socket(self._sock, server_hostname=server_hostname)
        except TimeoutError:
            self.close()
            raise self._deadline.exceeded(doing) from None
        except (OSError, ValueError) as error:
            self.close()
            raise WebhookTlsFailed(
                f"TLS with the webhook host {self._peer} failed: {_reason(error)}. Check its certificate; "
                "a private authority is trusted through the environment variable SSL_CERT_FILE."
            ) from error
        return self

    def close(self) -> None:
        """Close the connection."""
        self._sock.close()

    def _broken(self, reason: str) -> WebhookUnreachable:
        return WebhookUnreachable(
            f"The connection to the webhook host {self._peer} broke before the answer was complete: "
            f"{reason}. The receiver may have seen the request; its log can tell."
        )


def _look_up(host: str, port: int, answer: Future[list[str]]) -> None:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        answer.set_exception(error)
    else:
        answer.set_result(list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found)))


def _reason(error: Exception | None) -> str:
    return getattr(error, "verify_message", "") or getattr(error, "strerror", "") or str(error)
