"""Runs one claimed job and says how it ended. Never raises, never touches a job's row, knows nothing of the loop.

Whatever leaves a handler is a failed attempt, SystemExit and its kin included: the worker's own shutdown does not come
through here as an exception of the handler.
"""

import asyncio
import dataclasses
import functools
import json
import math
import traceback
from collections.abc import Callable
from typing import Any

from asgiref.sync import sync_to_async

from jobs import storable
from jobs.claims import Claim
from jobs.conf import settings
from jobs.context import Context
from jobs.errors import Abort, InvalidPayload, JobCancelled, Retry, Snooze
from jobs.outcomes import Cancelled, Failed, Outcome, Released, Snoozed, Succeeded
from jobs.registry import JobType
from workers import connections

_decode = json.JSONDecoder().raw_decode  # jsonb as text is JSON and nothing around it
_FRAMES = 30  # of a traceback, innermost last


def run(kind: JobType | None, claim: Claim, context: Context) -> Outcome:
    """Run a sync handler in this thread."""
    prepared = _prepare(kind, claim, context)
    if not callable(prepared):
        return prepared
    connections.before_handler()
    try:
        outcome = _outcome_of(prepared(), claim)
    except BaseException as error:  # noqa: BLE001  anything a handler raises is its failure, not ours
        outcome = _outcome_of_error(error, kind, context)
    return _with_complaint(outcome, _clean_up())


async def run_async(kind: JobType | None, claim: Claim, context: Context, database_used: Callable[[], bool]) -> Outcome:
    """Run an async handler on this loop; `database_used` says whether sync_to_async's thread holds connections."""
    prepared = _prepare(kind, claim, context)
    if not callable(prepared):
        return prepared
    try:
        outcome = _outcome_of(await prepared(), claim)
    except BaseException as error:  # noqa: BLE001  anything a handler raises is its failure, not ours
        outcome = _outcome_of_error(error, kind, context)
    complaint = await sync_to_async(_clean_up)() if database_used() else ""
    return _with_complaint(outcome, complaint)


def _prepare(kind: JobType | None, claim: Claim, context: Context) -> Callable[[], Any] | Outcome:
    """Return the call to make, or the outcome if there is none to make."""
    if claim.cancel_requested or context.cancelled:
        return Cancelled("Cancelled before it started.")
    if kind is None:
        reason = f"This worker knows no handler for the type {claim.type!r}; is its app installed here?"
        return Released(reason, delay=settings.UNKNOWN_TYPE_DELAY)
    try:
        arguments = kind.validate(_decoded(claim))
    except InvalidPayload as error:
        return Failed(str(error))
    except BaseException as error:  # noqa: BLE001  a validator of the handler's types is user code as well
        return _outcome_of_error(error, kind, context)
    if kind.wants_context:
        return functools.partial(kind.handler, context, **arguments)
    return functools.partial(kind.handler, **arguments)


def _decoded(claim: Claim) -> dict[str, Any]:
    payload, _ = _decode(claim.payload)
    if not isinstance(payload, dict):
        kind = type(payload).__name__
        raise InvalidPayload(f"The payload is a JSON {kind}, not an object of the handler's arguments.")
    return payload


def _outcome_of(value: Any, claim: Claim) -> Outcome:
    if value is None:
        return Succeeded()
    try:
        return Succeeded(storable.json_text(value, settings.MAX_RESULT_BYTES, "result"))
    except storable.NotStorable as error:
        return Failed(f"{claim.type} ran to its end, but what it returned cannot be stored: {error}")


def _outcome_of_error(error: BaseException, kind: JobType | None, context: Context) -> Outcome:
    match error:
        case JobCancelled():
            return Cancelled(str(error))
        case asyncio.CancelledError() if context.cancelled:
            return Cancelled(f"Job {context.job_id} was interrupted.")
        case Snooze(seconds=float() | int() as seconds, reason=reason) if 0 <= seconds < math.inf:
            return Snoozed(seconds, str(reason))
        case Abort():
            return Failed(_one_line(error), _traceback_of(error), final=True)
        case Retry(after=after):
            return Failed(_one_line(error), _traceback_of(error), delay=after)
    is_final = kind is not None and kind.is_final(error)
    return Failed(_one_line(error), _traceback_of(error), final=is_final)


def _one_line(error: BaseException) -> str:
    name = type(error).__qualname__
    if isinstance(error, asyncio.CancelledError):
        return f"{name}: the handler was cancelled from inside."
    try:
        text = str(error)
    except BaseException:  # noqa: BLE001  even __str__ is user code
        text = "(its text could not be made)"
    return f"{name}: {text}" if text else name


def _traceback_of(error: BaseException) -> str:
    try:
        inner = error.__traceback__.tb_next if error.__traceback__ else None  # without our own frame
        return "".join(traceback.TracebackException(type(error), error, inner, limit=-_FRAMES).format())
    except BaseException:  # noqa: BLE001  formatting calls user code, and the failure must be recorded all the same
        return ""


def _with_complaint(outcome: Outcome, complaint: str) -> Outcome:
    """Let a success that lost what it wrote count as the failure it is, and say so beside any other failure."""
    match outcome:
        case Succeeded() if complaint:
            return Failed(complaint)
        case Failed() if complaint:
            return dataclasses.replace(outcome, traceback=f"{outcome.traceback}\n{complaint}")
    return outcome


def _clean_up() -> str:
    try:
        return connections.after_handler()
    except Exception as error:  # noqa: BLE001  an unreachable database must not turn a result into a lost job
        connections.close_all()
        return f"The handler's database connection broke: {_one_line(error)}"
