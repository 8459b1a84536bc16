"""The one shape of every answer: `{message, data, errors, meta}`, whatever happened.

Errors tell the caller what to change, and nothing about the inside: what was not foreseen is logged and answered with
a plain 500.
"""

import functools
import logging
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from django.core.exceptions import RequestDataTooBig
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from ninja import NinjaAPI, Schema
from ninja.errors import AuthenticationError, HttpError, ValidationError

from jobs.errors import (
    ConfigurationError,
    DatabaseAway,
    DilammeError,
    InvalidJob,
    JobNotFound,
    TransitionRefused,
    UnknownType,
)

logger = logging.getLogger("dilamme.api")

T = TypeVar("T")


class Problem(Schema):
    """One thing that is wrong with a request: where, and what."""

    field: str
    message: str


class Envelope(Schema, Generic[T]):
    """What every answer looks like."""

    message: str
    data: T | None = None
    errors: list[Problem] = []
    meta: dict[str, Any] = {}


def envelope(message: str, data: Any = None, *, errors: Sequence[Problem] = (), **meta: Any) -> dict[str, Any]:
    """Return an answer in the one shape."""
    return {"message": message, "data": data, "errors": list(errors), "meta": meta}


def install_error_answers(api: NinjaAPI) -> None:
    """Answer every exception in the envelope."""

    def answer(status: int, *kinds: type[Exception]) -> Callable[[Callable[[Any], dict[str, Any]]], None]:
        def register(present: Callable[[Any], dict[str, Any]]) -> None:
            def handle(request: HttpRequest, error: Any) -> HttpResponse:
                return api.create_response(request, present(error), status=status)

            for kind in kinds:
                api.add_exception_handler(kind, handle)

        return register

    answer(401, AuthenticationError)(lambda _: envelope("Send a valid key in the header X-API-Key."))
    answer(404, Http404)(lambda _: envelope("There is nothing at this address."))
    answer(404, JobNotFound)(lambda error: envelope(str(error)))
    answer(409, TransitionRefused)(lambda error: envelope(str(error)))
    answer(413, RequestDataTooBig)(lambda _: envelope("The request is too large."))
    answer(422, UnknownType)(lambda error: _invalid("type", str(error)))
    answer(422, InvalidJob)(lambda error: _invalid(error.field, str(error)))
    answer(422, DilammeError)(lambda error: _invalid("request", str(error)))
    answer(422, ValidationError)(_invalid_request)
    answer(503, OperationalError, InterfaceError, DatabaseAway)(_away)
    answer(500, ConfigurationError, Exception)(_unforeseen)

    @api.exception_handler(HttpError)
    def handle_http_error(request: HttpRequest, error: HttpError) -> HttpResponse:
        return api.create_response(request, envelope(str(error)), status=error.status_code)


def _invalid(field: str, message: str) -> dict[str, Any]:
    return envelope("The request is not valid.", errors=[Problem(field=field, message=message)])


def _invalid_request(error: ValidationError) -> dict[str, Any]:
    problems = []
    for found in error.errors[:20]:
        # ninja's places begin with where it looked, and in a body with our parameter: ("body", "new", "priority")
        source, *place = map(str, found["loc"])
        field = ".".join(place[1:] if source == "body" else place) or source
        problems.append(Problem(field=field, message=found["msg"]))
    return envelope("The request is not valid.", errors=problems)


def _away(error: Exception) -> dict[str, Any]:
    logger.warning("A request found the database away: %s", error)
    return envelope("The database is away. Try again in a moment.")


def _unforeseen(error: Exception) -> dict[str, Any]:
    logger.error("A request failed.", exc_info=error)
    return envelope("Something went wrong here; it has been logged.")


def enveloped(api: NinjaAPI) -> Callable[[Callable[..., HttpResponse]], Callable[..., HttpResponse]]:
    """Return a decorator that puts in the envelope what a view answers before or beside ninja's handlers.

    That is "method not allowed", what it raises, and, for a caller without a session, Django's complaint about CSRF.
    """

    def decorate(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
        @csrf_exempt  # the key is in a header that a foreign site cannot make a browser send
        @functools.wraps(view)
        def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            try:
                response = view(request, *args, **kwargs)
            except Exception as error:  # noqa: BLE001  answered and logged like one in a route
                response = api.on_exception(request, error)
            return _not_allowed(api, request, response) if response.status_code == 405 else response

        return wrapped

    return decorate


def _not_allowed(api: NinjaAPI, request: HttpRequest, response: HttpResponse) -> HttpResponse:
    allowed = response.headers["Allow"]
    answer = api.create_response(request, envelope(f"Use {allowed} here."), status=405)
    answer.headers["Allow"] = allowed
    return answer
