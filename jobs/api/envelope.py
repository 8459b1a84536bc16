"""The one shape of every answer: `{message, data, errors, meta}`, whatever happened.

Errors tell the caller what to change, and nothing about the inside: what was not foreseen is logged and answered with
a plain 500.
"""

import functools
import logging
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from asgiref.sync import iscoroutinefunction
from django.core.exceptions import RequestDataTooBig
from django.db import InterfaceError, OperationalError, connections, transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from ninja import NinjaAPI, Schema
from ninja.errors import AuthenticationError, HttpError, ValidationError

from jobs.benchmarking import BenchmarkBusy, BenchmarkFailed, BenchmarkTimedOut
from jobs.errors import (
    ConfigurationError,
    DatabaseAway,
    DilammeError,
    InvalidJob,
    JobNotFound,
    SeriesNotFound,
    SpoolFailed,
    SpoolFull,
    TransitionRefused,
    UniqueKeyHeld,
    UnknownType,
    WorkflowNotFound,
)
from jobs.idempotency import KeyReused

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


ERRORS = dict.fromkeys((400, 401, 404, 409, 413, 422, 503), Envelope[None])  # what every route may answer besides


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
    answer(404, JobNotFound, WorkflowNotFound, SeriesNotFound)(lambda error: envelope(str(error)))
    answer(409, TransitionRefused, KeyReused, BenchmarkBusy)(lambda error: envelope(str(error)))
    answer(409, UniqueKeyHeld)(lambda error: envelope(str(error), job_id=error.job_id))
    answer(413, RequestDataTooBig)(lambda _: envelope("The request is too large."))
    answer(422, UnknownType)(lambda error: _invalid("type", str(error)))
    answer(422, InvalidJob)(lambda error: _invalid(error.field, str(error)))
    answer(422, DilammeError)(lambda error: _invalid("request", str(error)))
    answer(422, ValidationError)(_invalid_request)
    answer(503, OperationalError, InterfaceError, DatabaseAway)(_away)
    answer(503, SpoolFull)(lambda error: envelope(str(error)))
    answer(503, SpoolFailed)(_spool_failed)
    answer(503, BenchmarkTimedOut)(lambda error: envelope(str(error)))
    answer(500, BenchmarkFailed)(lambda error: envelope(str(error)))
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
    logger.warning("A request found the database away: %s", " ".join(str(error).split()))
    return envelope("The database is away. Try again in a moment.")


def _spool_failed(error: Exception) -> dict[str, Any]:
    logger.error("A request found the database away, and could not be spooled: %s", error)
    return envelope("The database is away, and the job could not be kept here either. Try again in a moment.")


def _unforeseen(error: Exception) -> dict[str, Any]:
    logger.error("A request failed.", exc_info=error)
    return envelope("Something went wrong here; it has been logged.")


def enveloped(api: NinjaAPI) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that puts in the envelope what a view answers before or beside ninja's handlers.

    That is "method not allowed", what it raises, and, for a caller without a session, Django's complaint about CSRF.
    A coroutine function stays one.
    """

    def decorate(view: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(view)
        def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            try:
                response = view(request, *args, **kwargs)
            except Exception as error:  # noqa: BLE001  answered and logged like one in a route
                response = api.on_exception(request, error)
            return _not_allowed(api, request, response) if response.status_code == 405 else response

        @functools.wraps(view)
        async def awaited(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            try:
                response = await view(request, *args, **kwargs)
            except Exception as error:  # noqa: BLE001  the same
                response = api.on_exception(request, error)
            return _not_allowed(api, request, response) if response.status_code == 405 else response

        # The key is in a header that a foreign site cannot make a browser send.
        return csrf_exempt(_without_transaction(awaited if iscoroutinefunction(view) else wrapped))

    return decorate


def _without_transaction(view: Callable[..., Any]) -> Callable[..., Any]:
    """Keep ATOMIC_REQUESTS away.

    The services open the transactions that they need; one around the view would need the database before a job can be
    spooled, and Django refuses to call a coroutine function inside one.
    """
    for alias in connections:
        view = transaction.non_atomic_requests(using=alias)(view)
    return view


def _not_allowed(api: NinjaAPI, request: HttpRequest, response: HttpResponse) -> HttpResponse:
    allowed = response.headers["Allow"]
    answer = api.create_response(request, envelope(f"Use {allowed} here."), status=405)
    answer.headers["Allow"] = allowed
    return answer
