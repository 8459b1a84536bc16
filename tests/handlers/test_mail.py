"""`send_email` through Django's SMTP backend to a real server on loopback: what arrives, and every way it fails."""

import asyncio
import email
import email.policy
import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.message import EmailMessage
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult
from django.core import mail as django_mail
from django.core.mail.backends.base import BaseEmailBackend
from django.core.mail.backends.smtp import EmailBackend

from tests.handlers.servers import RawServer, in_time, read_line
from workers.handlers import errors, mail
from workers.handlers.mail import send_email

BASE: dict[str, Any] = {"to": "ada@example.com", "subject": "Hello", "body": "Plain words."}


@dataclass
class Mailbox:
    """What an SMTP server accepts, remembers, and is told to answer instead of yes."""

    envelopes: list[Any] = field(default_factory=list)
    rcpt: dict[str, str] = field(default_factory=dict)  # recipient: answer
    sender: str = ""
    data: str = ""
    quit: str = ""

    async def handle_MAIL(self, _server: Any, _session: Any, envelope: Any, address: str, options: Any) -> str:  # noqa: N802
        """Answer MAIL FROM."""
        envelope.mail_from = address
        envelope.mail_options.extend(options)
        return self.sender or "250 OK"

    async def handle_RCPT(self, _server: Any, _session: Any, envelope: Any, address: str, _options: Any) -> str:  # noqa: N802
        """Answer RCPT TO."""
        if address not in self.rcpt:
            envelope.rcpt_tos.append(address)
        return self.rcpt.get(address, "250 OK")

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:  # noqa: N802
        """Answer the message."""
        if not self.data:
            self.envelopes.append(envelope)
        return self.data or "250 OK"

    async def handle_QUIT(self, _server: Any, _session: Any, _envelope: Any) -> str:  # noqa: N802
        """Answer QUIT."""
        return self.quit or "221 Bye"

    @property
    def messages(self) -> list[EmailMessage]:
        """The accepted messages, parsed."""
        return [email.message_from_bytes(e.content, policy=email.policy.default) for e in self.envelopes]


class FreePort(Controller):
    """A server on a port that the system chooses."""

    def _trigger_server(self) -> None:
        assert isinstance(self.server, asyncio.Server)
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()  # type: ignore[no-untyped-call]


@pytest.fixture
def mailbox(settings: Any) -> Iterator[Mailbox]:
    """Run an SMTP server, and point Django at it."""
    mailbox = Mailbox()
    controller = FreePort(mailbox, hostname="127.0.0.1", port=0)
    controller.start()
    use(settings, controller.port)
    yield mailbox
    controller.stop()


def use(settings: Any, port: int) -> None:
    """Point Django at the SMTP server on this port."""
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST = "127.0.0.1"
    settings.EMAIL_PORT = port
    settings.EMAIL_HOST_USER = settings.EMAIL_HOST_PASSWORD = ""
    settings.EMAIL_USE_TLS = settings.EMAIL_USE_SSL = False
    settings.DEFAULT_FROM_EMAIL = "Shop <shop@example.com>"


# What arrives


def test_sends_plain_text(mailbox: Mailbox) -> None:
    """A message without HTML arrives as plain text from the default sender, and the result says to whom."""
    result = send_email(**BASE)
    (message,) = mailbox.messages
    assert message.get_content_type() == "text/plain"
    assert message.get_content().strip() == "Plain words."
    assert (message["Subject"], message["To"]) == ("Hello", "ada@example.com")
    assert message["From"] == "Shop <shop@example.com>"
    assert message["Message-ID"] == result["message_id"]
    assert {**result, "message_id": ""} == {
        "sent": 1,
        "recipients": ["ada@example.com"],
        "refused": {},
        "message_id": "",
    }


def test_html_is_an_alternative_to_the_text(mailbox: Mailbox) -> None:
    """With HTML, both arrive as alternatives, the text first."""
    send_email(**BASE, html="<b>Bold</b> words.")
    (message,) = mailbox.messages
    assert message.get_content_type() == "multipart/alternative"
    assert [part.get_content_type() for part in message.iter_parts()] == ["text/plain", "text/html"]
    assert [part.get_content().strip() for part in message.iter_parts()] == ["Plain words.", "<b>Bold</b> words."]


def test_there_is_always_a_text(mailbox: Mailbox) -> None:
    """HTML without a text brings its own words as the text."""
    send_email("ada@example.com", "Hello", "", html="<b>Bold</b> words.")
    assert [part.get_content().strip() for part in mailbox.messages[0].iter_parts()] == [
        "Bold words.",
        "<b>Bold</b> words.",
    ]


def test_everyone_gets_it_and_blind_copies_stay_blind(mailbox: Mailbox) -> None:
    """All kinds of recipients are in the envelope, each once in the result, and Bcc in no header."""
    result = send_email(
        ["ada@example.com", "Bob <bob@example.com>"],
        "Hello",
        "x",
        cc=["cy@example.com", "ada@example.com"],
        bcc=["dee@example.com"],
        reply_to=["Help <help@example.com>"],
        from_email="News <news@example.com>",
    )
    everyone = ["ada@example.com", "bob@example.com", "cy@example.com", "dee@example.com"]
    (envelope,), (message,) = mailbox.envelopes, mailbox.messages
    assert envelope.mail_from == "news@example.com"
    assert set(envelope.rcpt_tos) == set(everyone)
    assert (result["sent"], result["recipients"]) == (4, everyone)
    assert message["To"] == "ada@example.com, Bob <bob@example.com>"
    assert message["Cc"] == "cy@example.com, ada@example.com"
    assert (message["Reply-To"], message["From"]) == ("Help <help@example.com>", "News <news@example.com>")
    assert b"dee@" not in envelope.content


def test_names_and_domains_of_the_world(mailbox: Mailbox) -> None:
    """Names in any script, names with commas, and international domains arrive, and are told apart."""
    result = send_email(
        ["Zoë Ünal <zoe@example.com>", '"Doe, Jane" <jane@example.com>', "Doe, John <john@example.com>"],
        "Grüße, 日本",
        "Größe: 日本",
        bcc=["max@bücher.example"],
    )
    (message,) = mailbox.messages
    assert [address.display_name for address in message["To"].addresses] == ["Zoë Ünal", "Doe, Jane", "Doe, John"]
    assert message["Subject"] == "Grüße, 日本"
    assert message.get_content().strip() == "Größe: 日本"
    assert "max@xn--bcher-kva.example" in result["recipients"]
    assert "max@xn--bcher-kva.example" in mailbox.envelopes[0].rcpt_tos


def test_own_headers_and_message_id(mailbox: Mailbox) -> None:
    """Further headers arrive, and a Message-ID among them is the one in the result."""
    headers = {"List-Unsubscribe": "<https://example.com/u>", "X-Name": "Zoë", "message-id": "<a1@example.com>"}
    assert send_email(**BASE, headers=headers)["message_id"] == "<a1@example.com>"
    (message,) = mailbox.messages
    assert message.get_all("Message-ID") == ["<a1@example.com>"]
    assert (message["List-Unsubscribe"], message["X-Name"]) == ("<https://example.com/u>", "Zoë")


def test_other_backends_work(settings: Any) -> None:
    """Whatever backend the project has is used, such as Django's one for tests."""
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    assert send_email(**BASE)["sent"] == 1
    assert django_mail.outbox[-1].subject == "Hello"


# Header injection


@pytest.mark.parametrize("bad", ["\n", "\r", "\r\n", "\x00", "\x0b", "\x85", "\u2028"])
@pytest.mark.parametrize("argument", ["to", "subject", "from_email", "cc", "bcc", "reply_to"])
def test_line_breaks_are_refused(mailbox: Mailbox, argument: str, bad: str) -> None:
    """A line break, or what could pass for one, in an address or the subject is refused before anything is sent."""
    value: Any = f"eve@example.com{bad}Bcc: all@example.com"
    listed = [value] if argument in ("cc", "bcc", "reply_to") else value
    with pytest.raises(errors.UnusableArgument, match=rf"^{argument} has a line break .* at position 15, .*remove it"):
        send_email(**{**BASE, argument: listed})
    assert mailbox.envelopes == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("X-Good", "s3cret\nBcc: all@example.com"),
        ("X-Good\r\nBcc", "s3cret"),
        ("X Good", "s3cret"),
        ("X-Good:", "s3cret"),
        ("", "s3cret"),
        ("Bcc", "s3cret"),
        ("to", "s3cret"),
        ("Subject", "s3cret"),
        ("From", "s3cret"),
        ("Content-Type", "s3cret"),
        ("MIME-Version", "s3cret"),
    ],
)
def test_headers_that_forge_or_replace(mailbox: Mailbox, name: str, value: str) -> None:
    """A header that holds a line break, or that has an argument of its own, is refused; its value is not shown."""
    with pytest.raises(errors.UnusableArgument, match="header") as caught:
        send_email(**BASE, headers={name: value})
    assert repr(name)[1:-1] in str(caught.value)
    assert "s3cret" not in str(caught.value)
    assert mailbox.envelopes == []


# Addresses


@pytest.mark.parametrize(
    "address",
    [" ", "ada", "ada@", "@example.com", "a da@example.com", "ada@exa_mple.com", "ada@example.com, bob@example.com",
     "Ada ada@example.com", "Ada <ada@example.com", "Ada <>", "<ada@example.com> Ada", "\u00e4da@example.com"],
)  # fmt: skip
@pytest.mark.parametrize("argument", ["to", "cc", "from_email"])
def test_addresses_that_are_none(mailbox: Mailbox, argument: str, address: str) -> None:
    """What is no single address is named, with its argument and the way to write it."""
    listed: Any = [address] if argument == "cc" else address
    with pytest.raises(errors.UnusableArgument, match=f"^{argument} contains {re.escape(repr(address))}, which is no"):
        send_email(**{**BASE, argument: listed})
    assert mailbox.envelopes == []


@pytest.mark.parametrize("to", ["", [""]])
def test_an_empty_address_is_none(mailbox: Mailbox, to: Any) -> None:
    """An empty string is an address that is missing, not a message to nobody."""
    with pytest.raises(errors.UnusableArgument, match=r"^to contains ''"):
        send_email(to, "Hello", "x", cc=["ada@example.com"])
    assert mailbox.envelopes == []


def test_somebody_has_to_get_it(mailbox: Mailbox) -> None:
    """A message to nobody is refused; one that goes only to blind copies is not."""
    with pytest.raises(errors.UnusableArgument, match="to, cc and bcc are empty"):
        send_email([], "Hello", "x")
    assert send_email([], "Hello", "x", bcc=["ada@example.com"])["sent"] == 1
    assert len(mailbox.envelopes) == 1


# Refusals of the server


def test_some_recipients_are_refused(mailbox: Mailbox) -> None:
    """Recipients that the server turns down while it takes others are reported, not retried: the rest has it."""
    mailbox.rcpt["bob@example.com"] = "550 no such user"
    result = send_email(["Ada <ada@example.com>", "Bob <bob@example.com>"], "Hello", "x")
    assert (result["sent"], result["recipients"]) == (1, ["ada@example.com"])
    assert result["refused"] == {"bob@example.com": "550 no such user"}
    assert mailbox.envelopes[0].rcpt_tos == ["ada@example.com"]


def test_every_recipient_is_refused(mailbox: Mailbox) -> None:
    """When nobody is accepted the attempt fails, and names each address with the words of the server."""
    mailbox.rcpt = {"ada@example.com": "550 no such user", "bob@example.com": "451 try later"}
    with pytest.raises(errors.MailRecipientsRefused) as caught:
        send_email(["Ada <ada@example.com>", "bob@example.com"], "Hello", "x")
    assert "ada@example.com: 550 no such user; bob@example.com: 451 try later" in str(caught.value)
    assert "127.0.0.1:" in str(caught.value)


@pytest.mark.parametrize("step", ["sender", "data"])
def test_the_message_is_refused(mailbox: Mailbox, step: str) -> None:
    """A refusal of sender or content is a failure with the words of the server, on one line."""
    setattr(mailbox, step, "552-too\r\n552 large")
    with pytest.raises(errors.MailRefused, match=r"refused the message: 552 too large"):
        send_email(**BASE)
    assert mailbox.envelopes == []


def test_a_failing_farewell_changes_nothing(mailbox: Mailbox) -> None:
    """Once the server has the message, trouble at the end of the session must not have it sent again."""
    mailbox.quit = "221 " + "x" * 9000
    assert send_email(**BASE)["sent"] == 1


def test_a_wrong_login(settings: Any) -> None:
    """A refused login names the server and the settings, and shows no password."""
    controller = FreePort(
        Mailbox(),
        hostname="127.0.0.1",
        port=0,
        auth_require_tls=False,
        authenticator=lambda *_: AuthResult(success=False, handled=False),
    )
    controller.start()
    try:
        use(settings, controller.port)
        settings.EMAIL_HOST_USER, settings.EMAIL_HOST_PASSWORD = "shop", "s3cret"
        with pytest.raises(errors.MailRefused, match=r"login: 535 .*password in the mail settings") as caught:
            send_email(**BASE)
    finally:
        controller.stop()
    assert "s3cret" not in str(caught.value)


def test_a_server_without_encryption(mailbox: Mailbox, settings: Any) -> None:
    """A server that lacks what the settings ask for gets no message in the clear."""
    settings.EMAIL_USE_TLS = True
    with pytest.raises(errors.MailRefused, match="STARTTLS"):
        send_email(**BASE)
    assert mailbox.envelopes == []


# Servers that are not there


def test_nobody_listens(settings: Any, closed_port: int) -> None:
    """A refused connection names host, port and reason."""
    use(settings, closed_port)
    with pytest.raises(errors.MailServerUnreachable, match=f"127.0.0.1:{closed_port} cannot be reached.*refused"):
        send_email(**BASE)


def test_a_silent_server_times_out(settings: Any, raw_server: RawServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A project without EMAIL_TIMEOUT does not wait for ever: the handler brings a timeout of its own."""
    use(settings, raw_server(lambda connection: connection.recv(1)))
    settings.EMAIL_TIMEOUT = None
    monkeypatch.setattr(mail, "SMTP_SECONDS", 0.2)
    with pytest.raises(errors.MailServerUnreachable, match="timed out"):
        send_email(**BASE)


def test_the_timeout_of_the_project_rules(settings: Any, raw_server: RawServer) -> None:
    """EMAIL_TIMEOUT, where the project sets it, is the one in force."""
    use(settings, raw_server(lambda connection: connection.recv(1)))
    settings.EMAIL_TIMEOUT = 0.2
    with in_time(), pytest.raises(errors.MailServerUnreachable, match="timed out"):
        send_email(**BASE)


def test_the_connection_breaks(settings: Any, raw_server: RawServer) -> None:
    """A server that hangs up in the middle of a session is a failure in words."""

    def hang_up(connection: socket.socket) -> None:
        connection.sendall(b"220 hello\r\n")
        read_line(connection)

    use(settings, raw_server(hang_up))
    with pytest.raises(errors.MailServerUnreachable, match="cannot be reached, or broke off"):
        send_email(**BASE)


class QuietBackend(EmailBackend):
    """Django's SMTP backend, told to keep failures to itself."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{**kwargs, "fail_silently": True})


def test_a_backend_that_keeps_failures_to_itself(settings: Any, closed_port: int) -> None:
    """A project may have silenced its SMTP backend: a job still fails when its message is not sent."""
    use(settings, closed_port)
    settings.EMAIL_BACKEND = f"{__name__}.QuietBackend"
    with pytest.raises(errors.MailServerUnreachable):
        send_email(**BASE)


class IdleBackend(BaseEmailBackend):
    """A backend that swallows messages."""

    def send_messages(self, email_messages: Any) -> int:
        """Send none of them."""
        assert email_messages
        return 0


def test_a_backend_that_sends_nothing(settings: Any) -> None:
    """A backend that reports no sent message is a failure, not a success."""
    settings.EMAIL_BACKEND = f"{__name__}.IdleBackend"
    with pytest.raises(errors.MailError, match="reports that it sent nothing"):
        send_email(**BASE)
