"""Delivers a JSON payload to an HTTP receiver: builds the request, follows redirects, judges the answer.

Where a connection may go and how long it may take is the business of `workers.handlers.network`. Nothing here
retries, and nothing here reads more of an answer than the excerpt that operators see.
"""

import functools
import json
import re
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal, get_args

import httpcore
import httpx
from pydantic import JsonValue

from jobs.conf import settings
from workers.handlers import addresses
from workers.handlers.errors import (
    UnusableArgument,
    WebhookBadAnswer,
    WebhookClientError,
    WebhookServerError,
    WebhookStatusError,
    WebhookTooManyRedirects,
)
from workers.handlers.network import Deadline, GuardedBackend

Method = Literal["POST", "PUT", "PATCH"]

TOTAL_SECONDS = 10.0
MAX_REDIRECTS = 3
EXCERPT_CHARACTERS = 1000

_EXCERPT_BYTES = 4 * EXCERPT_CHARACTERS  # no UTF-8 character is longer than 4 bytes
_QUOTED_CHARACTERS = 200  # of what somebody else sent, inside an error text

# RFC 9110, 5.6.2 and 5.5; values outside ASCII have no agreed encoding.
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*")

# They frame the message or the connection: a wrong one could smuggle a second request.
_OWN_HEADERS = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)


def webhook_delivery(
    url: str, payload: JsonValue, method: Method = "POST", headers: dict[str, str] | None = None
) -> dict[str, Any]:
    """Send `payload` as JSON to `url`, within 10 seconds in total, following up to 3 redirects.

    Returns `status_code`, `url` (where it ended, without credentials and query), `redirects` (how many were
    followed), `elapsed_ms` and `body` (the first 1000 characters of the answer). Raises `UnusableArgument`
    for an argument that cannot be sent, and a `WebhookError` of its own for each way a delivery fails. Only
    public addresses are reached, unless `DILAMME["WEBHOOK_ALLOW_PRIVATE"]` is set; proxies named in the
    environment are ignored, since a proxy would hide which address is reached. Redirects are those of httpx:
    another origin gets no Authorization header, but every other one.
    """
    refusal = _no_refusal if settings.WEBHOOK_ALLOW_PRIVATE else addresses.refusal
    network = GuardedBackend(Deadline(TOTAL_SECONDS), refusal)
    return deliver(url, payload, method, headers, network=network, tls=default_tls())


def deliver(
    url: str,
    payload: JsonValue,
    method: Method,
    headers: dict[str, str] | None,
    *,
    network: GuardedBackend,
    tls: ssl.SSLContext,
) -> dict[str, Any]:
    """Do what `webhook_delivery` promises over `network`, trusting the authorities of `tls`."""
    started = time.monotonic()
    request = _build(url, payload, method, headers)
    # A timeout of httpx begins anew with every read; the network has one deadline for the whole.
    timeout = httpx.Timeout(None)
    with httpx.Client(transport=_Transport(network, tls), trust_env=False, timeout=timeout) as client:
        response, redirects = _follow(client, request)
        body = _excerpt(response)
    _require_success(response, body)
    return {
        "status_code": response.status_code,
        "url": _shown(response.url),
        "redirects": redirects,
        "elapsed_ms": round((time.monotonic() - started) * 1000),
        "body": body,
    }


@functools.cache
def default_tls() -> ssl.SSLContext:
    """Return the shared context: it trusts public authorities, or those of SSL_CERT_FILE if that is set."""
    return httpx.create_ssl_context()


def _no_refusal(_: addresses.IPAddress) -> None:
    return None


def _build(url: str, payload: JsonValue, method: Method, headers: dict[str, str] | None) -> httpx.Request:
    if method not in get_args(Method):
        raise UnusableArgument(f"method is {method!r}; use one of {', '.join(get_args(Method))}.")
    defaults = {
        "Accept-Encoding": "identity",
        "Content-Type": "application/json",
        "User-Agent": "Dilamme",
    }
    merged = httpx.Headers(defaults)
    merged.update(_checked(headers or {}))
    return httpx.Request(method, _parsed(url), headers=merged, content=_encoded(payload))


def _encoded(payload: JsonValue) -> bytes:
    try:
        return json.dumps(payload, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise UnusableArgument(f"payload is not JSON: {error}. Use plain JSON values only.") from None


def _checked(headers: Mapping[str, str]) -> dict[str, str]:
    """Return `headers` fit for the wire; an error names a header, never its value, which may be a secret."""
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name):
            raise UnusableArgument(f"headers has the name {name!r}; use letters, digits and hyphens only.")
        if name.lower() in _OWN_HEADERS:
            raise UnusableArgument(f"headers sets {name!r}, which the delivery sets itself; remove it.")
        if not _HEADER_VALUE.fullmatch(value):
            raise UnusableArgument(
                f"headers gives {name!r} a line break, a control character or a character outside ASCII; "
                "remove it, or encode the value."
            )
    return {name: value.strip() for name, value in headers.items()}


def _parsed(url: str) -> httpx.URL:
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        # The parser's own message may quote a part of a password.
        shown = "" if "@" in url else f" {re.split('[?#]', url)[0][:_QUOTED_CHARACTERS]!r}"
        raise UnusableArgument(f"url{shown} cannot be parsed; use https://example.com/path.") from None
    if not _is_web(parsed):
        raise UnusableArgument(
            f"url has the scheme {parsed.scheme!r} and the host {parsed.host!r}; a webhook needs http or "
            "https, and a host: use https://example.com/path."
        )
    return parsed


def _follow(client: httpx.Client, request: httpx.Request) -> tuple[httpx.Response, int]:
    """Return the first answer that is no redirect, unread, and how many redirects led to it."""
    for redirects in range(MAX_REDIRECTS + 1):
        with _protocol_errors(request):
            response = client.send(request, stream=True, follow_redirects=False)
        if response.next_request is None:
            return response, redirects
        response.close()
        request = _redirected(response, response.next_request)
    raise WebhookTooManyRedirects(
        f"The webhook was redirected more than {MAX_REDIRECTS} times, at last to {_shown(request.url)}. "
        "Use the final address of the receiver as url."
    )


def _redirected(response: httpx.Response, following: httpx.Request) -> httpx.Request:
    if not _is_web(following.url):
        raise WebhookBadAnswer(
            f"{_shown(response.url)} redirected the webhook to an address with the scheme "
            f"{following.url.scheme!r}; only http and https are followed. Correct the receiver."
        )
    before = response.request
    if response.status_code == httpx.codes.FOUND and before.method in ("PUT", "PATCH"):
        # httpx makes a GET of every method here; RFC 9110, 15.4.3 allows that for POST alone.
        return httpx.Request(before.method, following.url, headers=following.headers, content=before.read())
    return following


def _excerpt(response: httpx.Response) -> str:
    read = bytearray()
    with _protocol_errors(response.request):
        for chunk in response.iter_raw():
            read += chunk
            if len(read) >= _EXCERPT_BYTES:
                break
    # PostgreSQL stores no NUL, and a binary answer must not make a delivered webhook fail.
    return read.decode("utf-8", "replace").replace("\0", "\ufffd")[:EXCERPT_CHARACTERS]


def _require_success(response: httpx.Response, body: str) -> None:
    if response.is_success:
        return
    status = response.status_code
    answered = f"{response.request.method} {_shown(response.url)} was answered with {status}"
    if phrase := httpx.codes.get_reason_phrase(status):
        answered += f" {phrase}"
    if body:
        answered += f": {body[:_QUOTED_CHARACTERS]!r}"
    if response.is_client_error:
        hint = "The receiver refuses this request: check url, headers and payload before it runs again."
        raise WebhookClientError(f"{answered}. {hint}", status_code=status)
    if response.is_server_error:
        hint = "The receiver failed: look into its log; a later attempt may succeed."
        raise WebhookServerError(f"{answered}. {hint}", status_code=status)
    hint = "Only 2xx counts as delivered: use the final address of the receiver as url."
    raise WebhookStatusError(f"{answered}. {hint}", status_code=status)


def _is_web(url: httpx.URL) -> bool:
    return url.scheme in ("http", "https") and bool(url.host)


def _shown(url: httpx.URL) -> str:
    """Return `url` without credentials, query and fragment, which may hold secrets."""
    return str(url.copy_with(userinfo=b"", query=None, fragment=None))


@contextmanager
def _protocol_errors(request: httpx.Request) -> Iterator[None]:
    try:
        yield
    except (httpcore.ProtocolError, httpx.ProtocolError, httpx.InvalidURL) as error:
        reason = str(error)[:_QUOTED_CHARACTERS].rstrip(".")
        raise WebhookBadAnswer(
            f"{_shown(request.url)} did not answer in valid HTTP: {reason}. "
            "Check that url points at the receiver itself."
        ) from None


class _Transport(httpx.BaseTransport):
    """Sends over a given network, for which httpx's own transport has no parameter."""

    def __init__(self, network: httpcore.NetworkBackend, tls: ssl.SSLContext) -> None:
        # Without keep-alive every request connects anew, and so passes the checks of the network.
        self._pool = httpcore.ConnectionPool(tls, max_keepalive_connections=0, network_backend=network)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        url = httpcore.URL(
            scheme=request.url.raw_scheme,
            host=request.url.raw_host,
            port=request.url.port,
            target=request.url.raw_path,
        )
        answer = self._pool.handle_request(
            httpcore.Request(request.method, url, headers=request.headers.raw, content=request.stream)
        )
        return httpx.Response(answer.status, headers=answer.headers, stream=_Stream(answer))

    def close(self) -> None:
        self._pool.close()


class _Stream(httpx.SyncByteStream):
    def __init__(self, answer: httpcore.Response) -> None:
        self._answer = answer

    def __iter__(self) -> Iterator[bytes]:
        yield from self._answer.iter_stream()

    def close(self) -> None:
        self._answer.close()
