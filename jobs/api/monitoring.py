"""`/health` for load balancers and `/metrics` for Prometheus: how this process and the whole are doing."""

from collections.abc import Iterator
from typing import Literal

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from ninja import Schema
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from pydantic import Field

from jobs import insights
from jobs.api.envelope import envelope, enveloped
from jobs.api.keys import ApiKey
from jobs.api.routes import api
from jobs.spool.forwarder import SpoolStatus, forwarder


class SpoolOut(Schema):
    """The spool of this web process."""

    jobs: int = Field(description="Jobs accepted and not yet in the database.")
    size: int = Field(description="Bytes they take.")
    limit: int = Field(description="Bytes they may take.")

    @classmethod
    def of(cls, status: SpoolStatus) -> "SpoolOut | None":
        """Return how it is doing, or None where there is none."""
        return cls(jobs=status.jobs, size=status.size, limit=status.limit) if status.is_on else None


class HealthOut(Schema):
    """How the whole is doing."""

    status: Literal["ok", "spooling", "database away"]
    workers: int | None = Field(default=None, description="Workers whose lease stands.")
    listening: int | None = Field(default=None, description="Those of them that notifications reach; the others poll.")
    spool: SpoolOut | None = None


@enveloped(api)
@require_safe
def health(request: HttpRequest) -> HttpResponse:
    """Answer 200 while new jobs are accepted, 503 otherwise; without a key, for load balancers.

    They are accepted while the database answers, and with a spool that has room also while it does not.
    """
    forwarder.attend()
    spool = forwarder.status()
    found = _ask()
    if found is None:
        takes_jobs = spool.is_on and spool.size < spool.limit
        state = HealthOut(status="spooling" if takes_jobs else "database away", spool=SpoolOut.of(spool))
        answer = envelope("The database is away.", state.dict())
        return api.create_response(request, answer, status=200 if takes_jobs else 503)
    state = HealthOut(status="ok", workers=found.workers, listening=found.listening, spool=SpoolOut.of(spool))
    return api.create_response(request, envelope("Up.", state.dict()), status=200)


@enveloped(api)
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Answer in Prometheus' text format; needs a key, like the API. The spool's figures are this process's own."""
    if ApiKey().authenticate(request, request.headers.get(ApiKey.param_name)) is None:
        answer = envelope(f"Send a valid key in the header {ApiKey.param_name}.")
        return api.create_response(request, answer, status=401)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector())
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)


class _Collector:
    """Reads everything anew at each scrape."""

    def collect(self) -> Iterator[Metric]:
        found = _ask()
        yield _gauge("database_up", "Whether the database answers.", int(found is not None))
        if found is not None:
            yield _gauge("workers", "Workers whose lease stands.", found.workers)
            yield _gauge("workers_listening", "Those of them that notifications reach.", found.listening)
        spool = forwarder.status()
        if spool.is_on:
            yield from _of_spool(spool)


def _of_spool(spool: SpoolStatus) -> Iterator[Metric]:
    yield _gauge("spool_jobs", "Jobs accepted and not yet in the database.", spool.jobs)
    yield _gauge("spool_bytes", "Bytes they take.", spool.size)
    yield _gauge("spool_limit_bytes", "Bytes they may take.", spool.limit)
    yield _counter("spool_kept", "Jobs that were put in the spool.", spool.kept)
    yield _counter("spool_forwarded", "Jobs that were taken from the spool to the database.", spool.forwarded)
    yield _counter("spool_refused", "Spooled jobs that the database refused; kept in refused.jsonl.", spool.refused)


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"dilamme_{name}", text, value)


def _counter(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(f"dilamme_{name}", text, value)


def _ask() -> insights.Health | None:
    """Return who is alive, or None if the database does not say."""
    try:
        return insights.health()
    except (OperationalError, InterfaceError):
        return None
