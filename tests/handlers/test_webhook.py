"""`webhook_delivery` against a real receiver: what is sent, what is followed, what counts as delivered."""

import datetime as dt
import json
import socket
from typing import Any

import pytest

from tests.handlers.servers import Answer, RawServer, Receiver, deliver, in_time, read_request
from workers.handlers import errors
from workers.handlers.webhook import webhook_delivery

# What is sent, and what comes back


@pytest.mark.usefixtures("private_allowed")
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
def test_sends_the_payload_as_json(receiver: Receiver, method: Any) -> None:
    """The payload arrives as compact UTF-8 JSON, with the method that was asked for."""
    payload: Any = {"event": "order.paid", "amount": 12.5, "name": "Zoë", "items": [1, None, True]}
    webhook_delivery(receiver.url("/hook"), payload, method=method)
    (seen,) = receiver.seen
    assert (seen.method, seen.path) == (method, "/hook")
    assert json.loads(seen.body) == payload
    assert seen.headers["content-type"] == "application/json"
    assert seen.headers["accept-encoding"] == "identity"
    assert seen.headers["host"] == f"127.0.0.1:{receiver.port}"


@pytest.mark.usefixtures("private_allowed")
@pytest.mark.parametrize("payload", [None, False, 0, "text", [], [{"a": []}]])
def test_sends_any_json_value(receiver: Receiver, payload: Any) -> None:
    """A payload may be any JSON value, also one that is empty or null."""
    webhook_delivery(receiver.url(), payload)
    assert json.loads(receiver.seen[0].body) == payload


@pytest.mark.usefixtures("private_allowed")
def test_returns_what_happened(receiver: Receiver) -> None:
    """The result has the status, the final URL without its query, the redirects, the time and the answer."""
    receiver.answers["/hook"] = Answer(201, {}, "größer".encode())
    result = webhook_delivery(receiver.url("/hook?token=secret"), {})
    assert 0 <= result.pop("elapsed_ms") < 10_000
    assert result == {"status_code": 201, "url": receiver.url("/hook"), "redirects": 0, "body": "größer"}
    assert receiver.seen[0].path == "/hook?token=secret"


@pytest.mark.usefixtures("private_allowed")
def test_headers_are_added_and_replace_defaults(receiver: Receiver) -> None:
    """Headers of the payload are sent, and win over the default content type in whatever case."""
    webhook_delivery(receiver.url(), {}, headers={"X-Key": " k1 ", "content-TYPE": "application/cloudevents+json"})
    assert receiver.seen[0].headers["x-key"] == "k1"
    assert receiver.seen[0].headers["content-type"] == "application/cloudevents+json"


@pytest.mark.usefixtures("private_allowed")
def test_credentials_in_the_url_become_basic_authentication(receiver: Receiver) -> None:
    """User and password in the URL are sent as a header, and the result does not show them."""
    result = webhook_delivery(receiver.url(host="user:pass@127.0.0.1"), {})
    assert receiver.seen[0].headers["authorization"] == "Basic dXNlcjpwYXNz"
    assert result["url"] == receiver.url()


def test_an_endless_answer_is_cut(raw_server: RawServer) -> None:
    """Only the beginning of an answer is read: a receiver that never stops sending does not hold the worker."""

    def flood(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            connection.sendall(b"x" * 65536)

    with in_time():
        result = deliver(f"http://127.0.0.1:{raw_server(flood)}/")
    assert result["body"] == "x" * 1000


def test_a_binary_answer_can_be_stored(receiver: Receiver) -> None:
    """Bytes that are no text, or that PostgreSQL cannot store, are replaced."""
    receiver.answers["/"] = Answer(body=b"\xff\x00ok")
    assert deliver(receiver.url())["body"] == "\ufffd\ufffdok"


@pytest.mark.usefixtures("private_allowed")
def test_proxies_of_the_environment_are_ignored(
    receiver: Receiver, closed_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy in the environment is not used, since it would hide which address is reached."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{closed_port}")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    assert webhook_delivery(receiver.url(), {})["status_code"] == 200


# Answers that are failures


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, errors.WebhookClientError),
        (404, errors.WebhookClientError),
        (429, errors.WebhookClientError),
        (500, errors.WebhookServerError),
        (503, errors.WebhookServerError),
        (599, errors.WebhookServerError),
        (304, errors.WebhookStatusError),
    ],
)
def test_a_status_other_than_2xx_is_a_failure(
    receiver: Receiver, status: int, kind: type[errors.WebhookStatusError]
) -> None:
    """4xx, 5xx and the rest fail with their own error, which quotes status and answer but no secret."""
    body = b"" if status == 304 else b"quota used up"
    receiver.answers["/hook"] = Answer(status, {}, body)
    url = receiver.url("/hook?token=s3cret", host="user:s3cret@127.0.0.1")
    with pytest.raises(kind) as caught:
        deliver(url, {})
    assert type(caught.value) is kind
    assert caught.value.status_code == status
    text = str(caught.value)
    assert f"POST {receiver.url('/hook')} was answered with {status}" in text
    assert body.decode() in text
    assert "s3cret" not in text


def test_a_long_answer_is_quoted_in_part(receiver: Receiver) -> None:
    """An error quotes no more than the beginning of a long answer."""
    receiver.answers["/"] = Answer(500, {}, b"y" * 5000)
    with pytest.raises(errors.WebhookServerError) as caught:
        deliver(receiver.url())
    assert len(str(caught.value)) < 500


def test_an_answer_before_the_whole_request_is_read(raw_server: RawServer) -> None:
    """A receiver that refuses a large payload at once is understood, though sending the rest fails."""

    def refuse(connection: socket.socket) -> None:
        connection.recv(1024)
        connection.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")

    with pytest.raises(errors.WebhookClientError, match="413"):
        deliver(f"http://127.0.0.1:{raw_server(refuse)}/", "x" * 4_000_000)


@pytest.mark.parametrize("said", [b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"])
def test_an_answer_that_is_no_http(raw_server: RawServer, said: bytes) -> None:
    """Garbage and half an answer fail as an answer that cannot be understood."""

    def answer(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(said)

    with pytest.raises(errors.WebhookBadAnswer, match=r"did not answer in valid HTTP.*Check that url"):
        deliver(f"http://127.0.0.1:{raw_server(answer)}/")


# Redirects


@pytest.mark.parametrize(
    ("status", "method", "then"),
    [
        (301, "POST", "GET"),
        (302, "POST", "GET"),
        (303, "POST", "GET"),
        (301, "PUT", "PUT"),
        (302, "PUT", "PUT"),
        (302, "PATCH", "PATCH"),
        (303, "PUT", "GET"),
        (307, "POST", "POST"),
        (308, "PATCH", "PATCH"),
    ],
)
def test_redirects_change_the_method_only_where_http_says_so(
    receiver: Receiver, status: int, method: str, then: str
) -> None:
    """Only 303, and 301 and 302 after POST, make a GET without a body; everything else is sent again."""
    receiver.answers["/old"] = Answer(status, {"Location": "/new"}, b"moved")
    result = deliver(receiver.url("/old"), {"a": 1}, method)
    _, last = receiver.seen
    assert (last.method, last.path) == (then, "/new")
    assert last.body == (b"" if then == "GET" else b'{"a":1}')
    assert (result["redirects"], result["url"], result["status_code"]) == (1, receiver.url("/new"), 200)


def test_three_redirects_are_followed(receiver: Receiver) -> None:
    """A chain of three redirects arrives."""
    for n in range(3):
        receiver.answers[f"/{n}"] = Answer(307, {"Location": f"/{n + 1}"})
    assert deliver(receiver.url("/0"))["redirects"] == 3


def test_a_fourth_redirect_is_too_many(receiver: Receiver) -> None:
    """The error for too many redirects names where they led, without its query, and nothing is sent there."""
    receiver.answers["/"] = Answer(307, {"Location": "/?token=s3cret"})
    with pytest.raises(errors.WebhookTooManyRedirects) as caught:
        deliver(receiver.url())
    assert len(receiver.seen) == 4
    assert f"more than 3 times, at last to {receiver.url('/')}." in str(caught.value)


def test_another_origin_gets_no_authorization(receiver: Receiver, other_receiver: Receiver) -> None:
    """A redirect to another origin carries the payload, but neither credentials nor the old Host."""
    receiver.answers["/"] = Answer(307, {"Location": other_receiver.url("/new")})
    deliver(receiver.url(), {"a": 1}, headers={"Authorization": "Bearer s3cret"})
    assert receiver.seen[0].headers["authorization"] == "Bearer s3cret"
    assert "authorization" not in other_receiver.seen[0].headers
    assert other_receiver.seen[0].headers["host"] == f"127.0.0.2:{other_receiver.port}"
    assert other_receiver.seen[0].body == b'{"a":1}'


@pytest.mark.parametrize("location", ["ftp://127.0.0.1/", "file:///etc/passwd", "ws://127.0.0.1/", "gopher://x/"])
def test_only_web_addresses_are_followed(receiver: Receiver, location: str) -> None:
    """A redirect to another scheme is an answer that cannot be followed."""
    receiver.answers["/"] = Answer(302, {"Location": location})
    with pytest.raises(errors.WebhookBadAnswer, match=location.partition(":")[0]):
        deliver(receiver.url())


def test_a_redirect_to_no_address_at_all(receiver: Receiver) -> None:
    """A Location that cannot be parsed is an answer that cannot be understood."""
    receiver.answers["/"] = Answer(302, {"Location": "http://host:notaport/"})
    with pytest.raises(errors.WebhookBadAnswer, match="valid HTTP"):
        deliver(receiver.url())


# Arguments that cannot be used


@pytest.mark.parametrize(
    ("url", "part"),
    [
        ("ftp://example.com/", "scheme 'ftp'"),
        ("file:///etc/passwd", "scheme 'file'"),
        ("ws://example.com/", "scheme 'ws'"),
        ("example.com/hook", "scheme ''"),
        ("http://", "host ''"),
        ("http:///path", "host ''"),
        ("", "scheme ''"),
        ("http://host:port/?token=s3cret", "'http://host:port/'"),
        ("http://user:s3cret@host:port/", "cannot be parsed"),
        ("http://user:s3cret?x@host:port/", "cannot be parsed"),
        ("user:s3cret@example.com/", "scheme 'user'"),
        ("http://exa\nmple.com/", "cannot be parsed"),
    ],
)
def test_urls_that_are_no_web_address(url: str, part: str) -> None:
    """A URL that cannot be used is refused with the part that is wrong, without secrets, and with the way out."""
    with pytest.raises(errors.UnusableArgument) as caught:
        webhook_delivery(url, {})
    assert part in str(caught.value)
    assert "https://example.com/path" in str(caught.value)
    assert "s3cret" not in str(caught.value)


@pytest.mark.usefixtures("private_allowed")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("X-Key", "s3cret\r\nX-Forged: 1"),
        ("X-Key", "s3cret\n"),
        ("X-Key", "s3cret\x00"),
        ("X-Key", "s3crét-s3cret"),
        ("X-Key\r\nX-Forged", "s3cret"),
        ("X Key", "s3cret"),
        ("", "s3cret"),
        ("X-Kéy", "s3cret"),
        ("Host", "s3cret"),
        ("content-length", "s3cret"),
        ("Transfer-Encoding", "s3cret"),
        ("CONNECTION", "s3cret"),
        ("Accept-Encoding", "s3cret"),
    ],
)
def test_headers_that_could_forge_a_request(receiver: Receiver, name: str, value: str) -> None:
    """A header with a line break, or one that frames the request, is refused by name; its value is not shown."""
    with pytest.raises(errors.UnusableArgument, match="headers") as caught:
        webhook_delivery(receiver.url(), {}, headers={"X-Good": "1", name: value})
    assert repr(name) in str(caught.value)
    assert "s3cret" not in str(caught.value)
    assert receiver.seen == []


@pytest.mark.parametrize("payload", [float("nan"), {"at": dt.date(2025, 1, 1)}, "\ud800"])
def test_payloads_that_are_no_json(payload: Any) -> None:
    """A payload that JSON cannot express is refused before anything is sent."""
    with pytest.raises(errors.UnusableArgument, match="payload is not JSON"):
        webhook_delivery("https://example.com/", payload)


def test_other_methods_are_refused() -> None:
    """Only methods that carry a payload are sent."""
    with pytest.raises(errors.UnusableArgument, match="method is 'GET'; use one of POST, PUT, PATCH"):
        webhook_delivery("https://example.com/", {}, method="GET")  # type: ignore[arg-type]
