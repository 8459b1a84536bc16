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
from ninja import NinjaAPI, Schema
from ninja.errors import AuthenticationError, HttpError, ValidationError

from jobs.errors import DatabaseAway, DilammeError, InvalidJob, JobNotFound, TransitionRefused, UnknownType

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
    answer(500, Exception)(_unforeseen)
    api.add_exception_handler(
        HttpError, lambda request, error: api.create_response(request, envelope(str(error)), status=error.status_code)
    )


def _invalid(field: str, message: str) -> dict[str, Any]:
    return envelope("The request is not valid.", errors=[Problem(field=field, message=message)])


def _invalid_request(error: ValidationError) -> dict[str, Any]:
    problems = []
    for found in error.errors[:20]:
        # ninja's places begin with where it looked and the name of our parameter: ("body", "new", "priority")
        place = [str(part) for part in found["loc"]]
        field = ".".join(place[2:] if place[0] in ("body", "query") and len(place) > 2 else place[1:]) or place[0]
        problems.append(Problem(field=field, message=found["msg"]))
    return envelope("The request is not valid.", errors=problems)


def _away(error: Exception) -> dict[str, Any]:
    logger.warning("A request found the database away: %s", error)
    return envelope("The database is away; nothing was stored. Try again in a moment.")


def _unforeseen(error: Exception) -> dict[str, Any]:
    logger.error("A request failed.", exc_info=error)
    return envelope("Something went wrong here; it has been logged.")


def enveloped(api: NinjaAPI, view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Return the view with "method not allowed" in the envelope, which ninja answers before any handler is asked."""

    @functools.wraps(view)
    def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        response = view(request, *args, **kwargs)
        if response.status_code != 405:
            return response
        allowed = response.headers["Allow"]
        answer = api.create_response(request, envelope(f"Use {allowed} here."), status=405)
        answer.headers["Allow"] = allowed
        return answer

    return wrapped
