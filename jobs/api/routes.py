"""The routes under `/api/v1`, put together from those for jobs, workflows, series, queues and the benchmark."""

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from ninja import NinjaAPI

from jobs.api import benchmark, jobs, queues, series, workflows
from jobs.api.envelope import enveloped, install_error_answers
from jobs.api.keys import ApiKey

api = NinjaAPI(
    title="Dilamme",
    version="1",
    description="Make background jobs, follow them, act on them. Every answer is `{message, data, errors, meta}`.",
    auth=ApiKey(),
    urls_namespace="dilamme_api",
)
install_error_answers(api)
for router in (jobs.router, workflows.router, series.router, queues.router, benchmark.router):
    api.add_router("", router)


@enveloped(api)
def not_found(request: HttpRequest) -> HttpResponse:  # noqa: ARG001  Django's signature
    """Answer an address that is no route."""
    raise Http404


def urls() -> tuple[list[Any], str, str]:
    """Return the routes for `path("api/v1/", ...)`, every answer of theirs in the envelope."""
    patterns, app_name, namespace = api.urls
    for pattern in patterns:
        pattern.callback = enveloped(api)(pattern.callback)  # type: ignore[arg-type]  # always a view here
    return patterns, app_name, namespace
