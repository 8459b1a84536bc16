"""Sends one e-mail through Django's mail framework, with whatever backend the project has configured.

It composes and checks the message, hands it over, and turns every refusal into a sentence. It sends nothing
before every header and address has been checked, and never decides which server is used.
"""

import re
import smtplib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from email.utils import formataddr, make_msgid, parseaddr
from typing import Any, cast

from django.core import mail
from django.core.exceptions import ValidationError
from django.core.mail.backends.base import BaseEmailBackend
from django.core.mail.backends.smtp import EmailBackend
from django.core.validators import validate_email
from django.utils.encoding import punycode
from django.utils.html import strip_tags

from workers.handlers.errors import (
    MailError,
    MailRecipientsRefused,
    MailRefused,
    MailServerUnreachable,
    UnusableArgument,
)

SMTP_SECONDS = 10.0  # for each step of a session, where the project sets no timeout of its own

# Line breaks, and whatever else some program takes for one: each could start a header nobody asked for.
_BREAK = re.compile(r"[\x00-\x08\x0a-\x1f\x7f\x85\u2028\u2029]")
_HEADER_NAME = re.compile(r"[!-9;-~]+")  # RFC 5322, 2.2: printable ASCII without the colon
_MAILBOX = re.compile(r"(?:(?P<name>[^<>]*)(?P<open><))?(?P<address>[^<>\s]+)(?(open)>)")
_OWN_HEADERS = frozenset({"from", "to", "cc", "bcc", "reply-to", "subject", "mime-version"})


def send_email(
    to: str | list[str],
    subject: str,
    body: str,
    *,
    html: str | None = None,
    from_email: str | None = None,
    cc: list[str] | None = None,
    bcc: list[str] | None = None,
    reply_to: list[str] | None = None,
    headers: dict[str, str] | None = None,
) -> dict[str, Any]:
    """Send `body` as plain text, with `html` as its alternative; a string in `to` is one address.

    Addresses read `user@example.com` or `Name <user@example.com>`; without `from_email` the sender is
    Django's DEFAULT_FROM_EMAIL. Returns `recipients` (the bare addresses that were accepted, each once),
    `sent` (how many they are), `refused` ({address: what the server said}, for those it turned down while it
    took others) and `message_id`. Raises `UnusableArgument` before anything is sent, and `MailError` when
    sending failed.
    """
    message = mail.EmailMultiAlternatives(
        _unbroken(subject, "subject"),
        body or strip_tags(html or ""),  # Django leaves an empty text out, and HTML alone would remain
        _mailbox(from_email, "from_email") if from_email else None,
        to=_mailboxes([to] if isinstance(to, str) else to, "to"),
        cc=_mailboxes(cc or [], "cc"),
        bcc=_mailboxes(bcc or [], "bcc"),
        reply_to=_mailboxes(reply_to or [], "reply_to"),
        headers=_with_message_id(headers or {}),
    )
    if html:
        message.attach_alternative(html, "text/html")
    if not message.recipients():
        raise UnusableArgument("to, cc and bcc are empty; name at least one recipient.")
    refused = _hand_over(message)
    addresses = dict.fromkeys(parseaddr(mailbox)[1] for mailbox in message.recipients())
    accepted = [address for address in addresses if address not in refused]
    message_id = next(value for name, value in message.extra_headers.items() if name.lower() == "message-id")
    return {"sent": len(accepted), "recipients": accepted, "refused": refused, "message_id": message_id}


def _mailboxes(values: Iterable[str], argument: str) -> list[str]:
    return [_mailbox(value, argument) for value in values]


def _mailbox(value: str, argument: str) -> str:
    """Return `value` as a header holds it: the name quoted where needed, the domain in ASCII."""
    found = _MAILBOX.fullmatch(_unbroken(value, argument).strip())
    name, address = found.group("name", "address") if found else ("", "")
    try:
        validate_email(address)
        local, _, domain = address.rpartition("@")
        return formataddr(((name or "").strip().strip('"'), f"{local}@{punycode(domain)}"))
    except (ValidationError, UnicodeError):
        raise UnusableArgument(
            f"{argument} contains {value!r}, which is no e-mail address; write user@example.com or "
            "Name <user@example.com>, and several addresses as a list."
        ) from None


def _unbroken(value: str, what: str) -> str:
    if found := _BREAK.search(value):
        raise UnusableArgument(
            f"{what} has a line break or a control character at position {found.start()}, which could forge "
            "a header; remove it."
        )
    return value


def _with_message_id(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the checked `headers` with a Message-ID, so that the result can say which message it was."""
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name):
            raise UnusableArgument(f"headers has the name {name!r}; use letters, digits and hyphens only.")
        if name.lower() in _OWN_HEADERS or name.lower().startswith("content-"):
            raise UnusableArgument(f"headers sets {name!r}; use the argument for it, or remove it.")
        _unbroken(value, f"the header {name}")
    if any(name.lower() == "message-id" for name in headers):
        return dict(headers)
    return {**headers, "Message-ID": make_msgid(domain=mail.DNS_NAME.get_fqdn())}


def _hand_over(message: mail.EmailMultiAlternatives) -> dict[str, str]:
    """Send `message`, and return whom the server refused while it accepted others, with its words."""
    backend = _backend()
    with _readable(backend):
        if isinstance(backend, EmailBackend):
            return _send_by_smtp(backend, message)
        if not backend.send_messages([message]):
            raise MailError(f"{_name(backend)} reports that it sent nothing. Check the mail settings.")
        return {}


def _backend() -> BaseEmailBackend:
    # Django 6.1 puts `mailers` in the place of `get_connection`.
    mailers = getattr(mail, "mailers", None)
    return mailers.default if mailers else mail.get_connection()


def _send_by_smtp(backend: EmailBackend, message: mail.EmailMultiAlternatives) -> dict[str, str]:
    backend.fail_silently = False  # a failure that nobody hears of would count as sent
    if backend.timeout is None:
        backend.timeout = SMTP_SECONDS
    try:
        backend.open()
        session = _Session(backend.connection)
        backend.connection = cast("smtplib.SMTP", session)
        backend.send_messages([message])
    finally:
        # Whether the message was sent is known by now: a farewell that fails must not change it.
        with suppress(OSError):
            backend.close()
    return {parseaddr(mailbox)[1]: _words(*reply) for mailbox, reply in session.refused.items()}


class _Session:
    """An SMTP session that remembers whom the server refused, which Django's backend does not pass on."""

    def __init__(self, smtp: smtplib.SMTP | None) -> None:
        self._smtp = smtp
        self.refused: dict[str, tuple[int, bytes]] = {}

    def sendmail(self, *args: Any) -> None:
        self.refused = cast("smtplib.SMTP", self._smtp).sendmail(*args)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._smtp, name)


@contextmanager
def _readable(backend: BaseEmailBackend) -> Iterator[None]:
    name = _name(backend)
    try:
        yield
    except smtplib.SMTPRecipientsRefused as error:
        refused = [f"{parseaddr(to)[1]}: {_words(*reply)}" for to, reply in error.recipients.items()]
        raise MailRecipientsRefused(
            f"{name} refused every recipient ({'; '.join(refused)}). Check the addresses, and whether the "
            "server relays for this machine."
        ) from error
    except smtplib.SMTPAuthenticationError as error:
        raise MailRefused(
            f"{name} refused the login: {_words(error.smtp_code, error.smtp_error)}. Check the user and the "
            "password in the mail settings."
        ) from error
    except smtplib.SMTPResponseException as error:
        raise MailRefused(
            f"{name} refused the message: {_words(error.smtp_code, error.smtp_error)}. Check the sender and "
            "the size of the message; a code below 500 means that a later attempt may succeed."
        ) from error
    except smtplib.SMTPNotSupportedError as error:
        raise MailRefused(f"{name} lacks what the mail settings ask for: {error} Change them.") from error
    except OSError as error:
        raise MailServerUnreachable(
            f"{name} cannot be reached, or broke off: {error}. Check host, port and encryption in the mail "
            "settings, and that the server is up."
        ) from error


def _name(backend: BaseEmailBackend) -> str:
    if isinstance(backend, EmailBackend):
        return f"The mail server {backend.host}:{backend.port}"
    return f"The mail backend {type(backend).__module__}"


def _words(code: int, said: bytes | str) -> str:
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else said
    return f"{code} {' '.join(text.split())}"
