"""The filters beside the lists of jobs. Their choices come from what this process knows, never from a table scan.

A value that is in nobody's list, such as a type that only other processes know, can still be given in the address.
"""

import uuid
from collections.abc import Iterable
from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from jobs.admin.presentation import PRIORITIES
from jobs.conf import settings
from jobs.limits import valid_name
from jobs.models import Job
from jobs.registry import registry
from jobs.states import Status


class _Choice(admin.SimpleListFilter):
    """One exact value of one field. A value that no job can have finds nothing, and is no error."""

    def queryset(self, request: HttpRequest, queryset: QuerySet[Job]) -> QuerySet[Job]:  # noqa: ARG002  Django's
        value = self.value()
        if value is None:
            return queryset
        return queryset.filter(**{str(self.parameter_name): value}) if valid_name(value) else queryset.none()


class _NameChoice(_Choice):
    """The names that this process knows, and the one in the address."""

    def known(self) -> Iterable[str]:
        raise NotImplementedError

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:  # noqa: ARG002  Django's
        names = set(self.known())
        if (value := self.value()) and valid_name(value):
            names.add(value)
        return [(name, name) for name in sorted(names)]


class StatusFilter(_Choice):
    """By status."""

    title = "status"
    parameter_name = "status"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:  # noqa: ARG002  Django's
        """Return all statuses."""
        return [(status.value, str(status.label)) for status in Status]


class TypeFilter(_NameChoice):
    """By type."""

    title = "type"
    parameter_name = "type"

    def known(self) -> Iterable[str]:
        """Return the registered types."""
        return (kind.name for kind in registry)


class QueueFilter(_NameChoice):
    """By queue."""

    title = "queue"
    parameter_name = "queue"

    def known(self) -> Iterable[str]:
        """Return the default queue and those that types name."""
        yield settings.DEFAULT_QUEUE
        yield from (kind.queue for kind in registry if kind.queue)


class WorkflowFilter(admin.SimpleListFilter):
    """By workflow: shown only when one is asked for, as by the link on the page of a job."""

    title = "workflow"
    parameter_name = "workflow"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:  # noqa: ARG002  Django's
        """Return the one in the address, so that it can be seen and taken back."""
        value = self.value()
        return [(value, value)] if value else []

    def queryset(self, request: HttpRequest, queryset: QuerySet[Job]) -> QuerySet[Job]:  # noqa: ARG002  Django's
        """Return the jobs of the workflow; an id that is none finds nothing, and is no error."""
        try:
            return queryset.filter(workflow_id=uuid.UUID(self.value() or ""))
        except ValueError:
            return queryset.none()


class PriorityFilter(admin.SimpleListFilter):
    """By the level that a priority is nearest to."""

    title = "priority"
    parameter_name = "priority"

    _NEAR = {name.lower(): Q(priority__gte=level - 0.5, priority__lt=level + 0.5) for level, name in PRIORITIES.items()}

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:  # noqa: ARG002  Django's
        """Return the three levels."""
        return [(name.lower(), name) for name in PRIORITIES.values()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Job]) -> QuerySet[Job]:  # noqa: ARG002  Django's
        """Return the jobs near the chosen level."""
        value = self.value()
        if value is None:
            return queryset
        return queryset.filter(self._NEAR[value]) if value in self._NEAR else queryset.none()
