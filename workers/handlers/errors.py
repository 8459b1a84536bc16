"""How a built-in handler can fail: one class per cause, so that causes can be counted and told apart.

Every text names what failed, which value it was, and the way out. No text carries a password, a query string
or the value of a header. Nothing here decides whether an attempt is repeated.
"""

from jobs.errors import DilammeError


class HandlerError(DilammeError):
    """Base of every error that a built-in handler raises on purpose."""


class UnusableArgument(HandlerError):
    """An argument in the payload cannot be used; the same payload will fail again."""


class WebhookError(HandlerError):
    """A webhook was not delivered, or nobody can say that it was."""


class WebhookAddressForbidden(WebhookError):
    """The host is, or resolves to, an address that webhooks may not reach; nothing was sent."""


class WebhookHostUnknown(WebhookError):
    """The name of the host could not be resolved."""


class WebhookUnreachable(WebhookError):
    """No connection could be made, or it broke."""


class WebhookTlsFailed(WebhookError):
    """The TLS handshake failed, or the certificate is not trusted for this host."""


class WebhookTimeout(WebhookError):
    """The total time for one delivery ran out."""


class WebhookBadAnswer(WebhookError):
    """What came back is no valid HTTP, or redirects to something that is no http or https URL."""


class WebhookTooManyRedirects(WebhookError):
    """The receiver redirected more often than a delivery follows."""


class WebhookStatusError(WebhookError):
    """The receiver answered with a status that is not a success. `status_code` is that status."""

    def __init__(self, message: str, *, status_code: int) -> None:
        super().__init__(message)
        self.status_code = status_code


class WebhookClientError(WebhookStatusError):
    """The receiver answered 4xx: it refused this request."""


class WebhookServerError(WebhookStatusError):
    """The receiver answered 5xx: it could not handle the request now."""


class MailError(HandlerError):
    """An e-mail was not sent, or nobody can say that it was."""


class MailServerUnreachable(MailError):
    """No connection to the mail server could be made, or it broke."""


class MailRefused(MailError):
    """The mail server refused the login, the sender or the message."""


class MailRecipientsRefused(MailRefused):
    """The mail server refused every recipient."""


class LogError(HandlerError):
    """A log could not be turned into a report."""


class LogPathForbidden(LogError):
    """The path is not below a directory that the settings allow."""


class LogUnreadable(LogError):
    """The file is missing, is no regular file, or cannot be read."""


class LogUnparseable(LogError):
    """Not one line of the log has the known format."""
