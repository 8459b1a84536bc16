"""The header `Idempotency-Key`: a request that comes again is answered as it was the first time, and makes nothing.

The answer is rendered here, so that it is stored and sent as the same bytes. The rest is `jobs.idempotency`.
"""

from collections.abc import Callable
from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from ninja import Header, Schema, Status
from ninja.renderers import JSONRenderer

from jobs.idempotency import Reply, once

_RENDERER = JSONRenderer()
_CONTENT_TYPE = f"{_RENDERER.media_type}; charset={_RENDERER.charset}"

IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        pattern="^[!-~]+$",
        description="The same key with the same body gives the same answer, and is acted on once; 409 with another "
        "body. Printable ASCII without spaces, of the client's choice.",
    ),
]


def answered_once(
    request: HttpRequest, key: str | None, schema: type[Schema], act: Callable[[], Status[dict[str, Any]]]
) -> Status[dict[str, Any]] | HttpResponse:
    """Return what `act` answers; with a key, what it answered to the first such request of this client."""
    if key is None:
        return act()

    def reply() -> Reply:
        answer = act()
        data = schema.model_validate(answer.value).model_dump()
        return Reply(answer.status_code, _RENDERER.render(request, data, response_status=answer.status_code))

    asked = f"{request.method} {request.path}\n".encode() + request.body
    kept = once(request.auth, key, asked, reply)  # type: ignore[attr-defined]  # set by ninja
    response = HttpResponse(kept.text, status=kept.status, content_type=_CONTENT_TYPE)
    if kept.is_repeated:
        response.headers["Idempotent-Replayed"] = "true"
    return response
