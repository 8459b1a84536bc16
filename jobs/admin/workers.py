"""The list of worker processes and of what each serves. It tells of them; they are started and stopped elsewhere."""

from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import flatten_fieldsets
from django.db.models import BooleanField, ExpressionWrapper, Q, QuerySet
from django.db.models.functions import Now
from django.http import HttpRequest

from jobs.admin import presentation
from jobs.admin.base import ReadOnlyAdmin
from jobs.conf import settings
from jobs.models import Worker


@admin.register(Worker)
class WorkerAdmin(ReadOnlyAdmin):
    """Workers that are alive, or were until their lease ran out."""

    list_display = ("state", "name", "serves", "slots", "hears", "started", "lease_ends")
    list_display_links = ("name",)
    ordering = ("-started_at", "-pk")
    fieldsets = (
        (None, {"fields": ("id", "name", ("state", "hears"), ("started", "lease_ends"))}),
        ("What it runs", {"fields": ("slots", "serves", "knows")}),
    )

    def get_readonly_fields(self, request: HttpRequest, obj: Worker | None = None) -> list[str]:  # noqa: ARG002  Django's
        """Return every field."""
        return list(flatten_fieldsets(self.fieldsets))

    def get_queryset(self, request: HttpRequest) -> QuerySet[Worker]:  # noqa: ARG002  Django's signature
        """Return all workers, each with whether its lease stands by the database's clock."""
        alive = ExpressionWrapper(Q(lease_expires_at__gt=Now()), output_field=BooleanField())
        return Worker.objects.using(settings.DATABASE).annotate(alive=alive)

    @admin.display(description="state")
    def state(self, worker: Any) -> str:
        """Return whether it is alive, is coming to its end, or has not been heard of."""
        if not worker.alive:
            return presentation.tag("Lost", "failed")
        return presentation.tag("Stopping", "pending") if worker.stopping else presentation.tag("Alive", "completed")

    @admin.display(description="listening", boolean=True)
    def hears(self, worker: Worker) -> bool:
        """Return whether notifications reach it; otherwise it polls."""
        return worker.listening

    @admin.display(description="queues")
    def serves(self, worker: Worker) -> str:
        """Return the queues it takes jobs from."""
        return "all" if worker.queues is None else ", ".join(map(str, worker.queues))

    @admin.display(description="types")
    def knows(self, worker: Worker) -> str:
        """Return the types it has handlers for."""
        return ", ".join(map(str, worker.types))

    @admin.display(description="concurrency")
    def slots(self, worker: Worker) -> int:
        """Return how many handlers it runs at once."""
        return worker.concurrency

    @admin.display(description="started")
    def started(self, worker: Worker) -> str:
        """Return when the process started."""
        return presentation.moment(worker.started_at)

    @admin.display(description="lease expires")
    def lease_ends(self, worker: Worker) -> str:
        """Return until when it counts as alive unless it says so again."""
        return presentation.moment(worker.lease_expires_at)
