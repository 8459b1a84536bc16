"""The network of webhooks against real sockets: the deadline, connections that fail, addresses, TLS."""

import datetime as dt
import socket
import ssl
import struct
import threading
import time
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.handlers.servers import SHORT, Answer, RawServer, Receiver, deliver, in_time, read_request, silent_listener
from workers.handlers import errors, webhook
from workers.handlers.webhook import webhook_delivery

Names = dict[str, list[list[str]]]


# Time


def test_a_silent_receiver_times_out(raw_server: RawServer) -> None:
    """A receiver that accepts and says nothing costs no more than the deadline; the error names both."""

    def listen(connection: socket.socket) -> None:
        read_request(connection)
        connection.recv(1)

    port = raw_server(listen)
    with in_time(), pytest.raises(errors.WebhookTimeout, match=rf"within 0.5 s: .* waiting for 127.0.0.1:{port}"):
        deliver(f"http://127.0.0.1:{port}/", deadline=SHORT)


@pytest.mark.parametrize("start", [b"", b"HTTP/1.1 200 OK\r\nX-Slow: ", b"HTTP/1.1 200 OK\r\n\r\n"])
def test_dripping_bytes_do_not_extend_the_deadline(raw_server: RawServer, start: bytes) -> None:
    """A byte now and then, in the status line, the headers or the body, does not buy the receiver more time."""

    def drip(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(start)
        for byte in b"HTTP/1.1 " + b"2" * 1000:
            connection.sendall(bytes([byte]))
            time.sleep(0.02)

    with in_time(), pytest.raises(errors.WebhookTimeout):
        deliver(f"http://127.0.0.1:{raw_server(drip)}/", deadline=SHORT)


def test_a_receiver_that_reads_slowly_times_out(raw_server: RawServer) -> None:
    """A receiver that takes a large payload bit by bit does not extend the deadline either."""

    def sip(connection: socket.socket) -> None:
        for _ in range(40):
            connection.recv(200_000)
            time.sleep(0.05)

    with in_time(), pytest.raises(errors.WebhookTimeout, match="sending to"):
        deliver(f"http://127.0.0.1:{raw_server(sip)}/", "x" * 20_000_000, deadline=1)


def test_a_receiver_that_drips_its_handshake_times_out(raw_server: RawServer) -> None:
    """A handshake that never ends counts against the same deadline."""

    def stall(connection: socket.socket) -> None:
        connection.recv(65536)
        for byte in b"\x16\x03\x03\x40\x00" + bytes(1000):
            connection.sendall(bytes([byte]))
            time.sleep(0.02)

    with in_time(), pytest.raises(errors.WebhookTimeout, match="agreeing on TLS"):
        deliver(f"https://127.0.0.1:{raw_server(stall)}/", deadline=SHORT)


def test_redirects_share_the_deadline(raw_server: RawServer) -> None:
    """Every hop may be quick and the delivery still too slow: the time is for the whole."""

    def wander(connection: socket.socket) -> None:
        read_request(connection)
        time.sleep(0.2)
        connection.sendall(b"HTTP/1.1 307 Go\r\nLocation: /\r\nContent-Length: 0\r\n\r\n")

    with in_time(), pytest.raises(errors.WebhookTimeout):
        deliver(f"http://127.0.0.1:{raw_server(wander)}/", deadline=SHORT)


def test_a_resolver_that_hangs_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time for resolving the name is part of the deadline, although the resolver itself has no timeout."""
    released = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: released.wait(30) and [])
    with in_time(), pytest.raises(errors.WebhookTimeout, match=r"resolving slow\.example"):
        deliver("http://slow.example/", deadline=SHORT)
    released.set()


def test_the_deadline_is_ten_seconds() -> None:
    """A delivery may take ten seconds in total, unless somebody changes what is documented."""
    assert webhook.TOTAL_SECONDS == 10
    assert "10 seconds in total" in (webhook_delivery.__doc__ or "")


# Connections that fail


def test_nobody_listens(closed_port: int) -> None:
    """A refused connection names host, port, address and reason."""
    with pytest.raises(errors.WebhookUnreachable) as caught:
        deliver(f"http://localhost:{closed_port}/")
    assert f"localhost:{closed_port} (" in str(caught.value)
    assert "127.0.0.1" in str(caught.value)
    assert "Connection refused" in str(caught.value)


def test_the_connection_breaks(raw_server: RawServer) -> None:
    """A connection that is reset before the answer fails, and says that the request may have been seen."""

    def reset(connection: socket.socket) -> None:
        read_request(connection)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    with pytest.raises(errors.WebhookUnreachable, match=r"broke before.*may have seen the request"):
        deliver(f"http://127.0.0.1:{raw_server(reset)}/")


def test_the_connection_ends_without_an_answer(raw_server: RawServer) -> None:
    """A connection that is closed before the first byte of an answer fails as a connection that broke."""
    with pytest.raises(errors.WebhookUnreachable, match=r"closed without an answer"):
        deliver(f"http://127.0.0.1:{raw_server(read_request)}/")


@pytest.mark.parametrize("host", ["nowhere.invalid", "a" * 64 + ".example"])
def test_an_unknown_name(host: str) -> None:
    """A name that does not resolve, or could not be one, is named."""
    with pytest.raises(errors.WebhookHostUnknown, match=f"'{host}' could not be resolved: .* Check its spelling"):
        deliver(f"http://{host}/")


def test_the_next_address_is_tried(receiver: Receiver, names: Names) -> None:
    """A name with several addresses is reached at the first that answers."""
    names["two.example"] = [["127.0.0.3", "127.0.0.1"]]
    assert deliver(receiver.url(host="two.example"))["status_code"] == 200


def test_a_silent_address_leaves_time_for_the_next(receiver: Receiver, names: Names) -> None:
    """An address that lets the connection hang uses up its share of the time, and not the whole."""
    names["two.example"] = [["127.0.0.2", "127.0.0.1"]]
    with silent_listener("127.0.0.2", receiver.port):
        assert deliver(receiver.url(host="two.example"), deadline=2)["status_code"] == 200


# Addresses that may not be reached


@pytest.mark.usefixtures("default_settings")
@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "localhost", "127.1", "2130706433", "0x7f000001", "0.0.0.0", "[::ffff:127.0.0.1]", "[::]"],
)
def test_private_addresses_are_refused_by_default(receiver: Receiver, host: str) -> None:
    """However it is spelled, an address of this machine gets not even a connection, and the text says why."""
    with pytest.raises(errors.WebhookAddressForbidden) as caught:
        webhook_delivery(receiver.url(host=host), {})
    assert "nothing was sent" in str(caught.value)
    assert 'DILAMME["WEBHOOK_ALLOW_PRIVATE"] = True' in str(caught.value)
    assert receiver.seen == []


def test_a_redirect_to_a_forbidden_address(receiver: Receiver, other_receiver: Receiver) -> None:
    """A permitted receiver cannot send the delivery on to an address that is not."""
    receiver.answers["/"] = Answer(307, {"Location": other_receiver.url("/inside")})
    with pytest.raises(errors.WebhookAddressForbidden, match=r"127\.0\.0\.2"):
        deliver(receiver.url(), permitted={"127.0.0.1"})
    assert other_receiver.seen == []


def test_the_address_that_was_checked_is_the_one_reached(receiver: Receiver, names: Names) -> None:
    """A name that answers with another address the second time is asked only once: no rebinding."""
    names["rebinding.example"] = [["127.0.0.1"], ["127.0.0.2"]]
    deliver(receiver.url(host="rebinding.example"), permitted={"127.0.0.1"})
    assert receiver.seen[0].headers["host"] == f"rebinding.example:{receiver.port}"
    assert names["rebinding.example"] == [["127.0.0.2"]]


def test_one_forbidden_address_spoils_a_name(receiver: Receiver, names: Names) -> None:
    """A name with a permitted and a forbidden address is refused as a whole, whatever their order."""
    names["mixed.example"] = [["127.0.0.1", "127.0.0.2"]]
    with pytest.raises(errors.WebhookAddressForbidden, match=r"'mixed\.example' leads to 127\.0\.0\.2"):
        deliver(receiver.url(host="mixed.example"), permitted={"127.0.0.1"})
    assert receiver.seen == []


# TLS


class Tls:
    """A receiver over TLS for `localhost`, with a certificate that only `trusting` accepts."""

    def __init__(self, directory: Path) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
        now = dt.datetime.now(dt.UTC)
        certificate = (
            x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(days=1))
            .not_valid_after(now + dt.timedelta(days=1))
            .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
            .sign(key, hashes.SHA256())
        )
        pem = directory / "receiver.pem"
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        pem.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
        self.trusting = ssl.create_default_context(cafile=str(pem))
        self.names_asked_for: list[str | None] = []
        self.server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.server.load_cert_chain(pem)
        self.server.sni_callback = lambda _sock, name, _context: self.names_asked_for.append(name)


@pytest.fixture
def tls(tmp_path: Path, receiver: Receiver) -> Tls:
    """Put TLS in front of the receiver."""
    tls = Tls(tmp_path)
    receiver.server.socket = tls.server.wrap_socket(
        receiver.server.socket, server_side=True, do_handshake_on_connect=False
    )
    return tls


def test_tls_is_for_the_name_not_the_address(receiver: Receiver, tls: Tls) -> None:
    """The connection goes to a checked address, but SNI, certificate and Host are for the name in the URL."""
    result = deliver(f"https://localhost:{receiver.port}/", {"a": 1}, tls=tls.trusting)
    assert result["status_code"] == 200
    assert tls.names_asked_for == ["localhost"]
    assert receiver.seen[0].headers["host"] == f"localhost:{receiver.port}"


def test_a_certificate_nobody_vouches_for(receiver: Receiver, tls: Tls) -> None:
    """A self-signed certificate fails the delivery before anything is sent, and the text says how to trust it."""
    assert tls
    with pytest.raises(errors.WebhookTlsFailed, match=r"self-signed certificate.*SSL_CERT_FILE"):
        deliver(f"https://localhost:{receiver.port}/")
    assert receiver.seen == []


def test_a_certificate_for_another_name(receiver: Receiver, tls: Tls, names: Names) -> None:
    """A trusted certificate for another host fails the delivery."""
    names["other.example"] = [["127.0.0.1"]]
    with pytest.raises(errors.WebhookTlsFailed, match=r"other\.example"):
        deliver(f"https://other.example:{receiver.port}/", tls=tls.trusting)
    assert receiver.seen == []


def test_a_receiver_without_tls(receiver: Receiver) -> None:
    """An https URL for a receiver that speaks plain HTTP fails as TLS, not as a timeout."""
    with pytest.raises(errors.WebhookTlsFailed, match=f"127.0.0.1:{receiver.port}"):
        deliver(f"https://127.0.0.1:{receiver.port}/")
