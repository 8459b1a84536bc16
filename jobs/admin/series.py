"""The list of series and the form of one. The form asks `jobs.series` what may be saved, and saves through it."""

import uuid
from typing import Any
from zoneinfo import ZoneInfo

from django import forms
from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.urls import reverse

from jobs import series as service
from jobs.admin import presentation
from jobs.admin.forms import PayloadField, refuse
from jobs.admin.pressing import Press, PressableAdmin
from jobs.conf import settings
from jobs.errors import DilammeError
from jobs.models import Series

_WHAT = ("name", "type", "payload", "queue", "priority", "max_attempts")
_WHEN = ("interval", "cron", "zone", "mode", "starts_at", "ends_at", "jitter")
_MISSED = ("catch_up", "catch_up_limit", "overlap")
_STANDS = (("state", "next_slot", "last_seen"), ("skipped", "is_declared", "last_job"))


class SeriesForm(forms.ModelForm):  # type: ignore[type-arg]  # not subscriptable when the program runs
    """What of a series is edited here."""

    payload = PayloadField()

    class Meta:
        model = Series
        fields = (*_WHAT, *_WHEN, *_MISSED)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "starts_at" in self.fields:
            self.fields["starts_at"].required = False

    def given(self) -> dict[str, Any]:
        """Return what the service is to set: of a new series all that was filled in, of another what was changed."""
        is_new = self.instance.pk is None
        wanted = {name: value for name, value in self.cleaned_data.items() if is_new or name in self.changed_data}
        if wanted.get("starts_at") is None:
            wanted.pop("starts_at", None)  # now for a new one, as it is for one that is edited
        return wanted

    def clean(self) -> dict[str, Any]:
        """Refuse what the service would refuse, at the field that is wrong; it knows all that the model does."""
        if not self.errors:
            try:
                if self.instance.pk is None:
                    service.check_series(**self.given())
                else:
                    service.check_edit(self.instance, **self.given())
            except DilammeError as error:
                refuse(self, error)
        return self.cleaned_data


@admin.register(Series)
class SeriesAdmin(PressableAdmin):
    """Series by name; those that the code declares can be paused and run, and are edited there."""

    form = SeriesForm
    list_display = ("state", "title", "type", "rule", "zone", "next_slot", "skipped", "is_declared")
    list_display_links = ("title",)
    ordering = ("name",)
    search_fields = ("name", "type")
    search_help_text = "How a name or a type begins."
    presses = (
        Press(
            "pause", "Pause", "Paused", "dilamme.change_series", service.pause_series, lambda series: not series.paused
        ),
        Press("resume", "Resume", "Resumed", "dilamme.change_series", service.resume_series, lambda one: one.paused),
        Press("run", "Run now", "Runs now", "dilamme.run_series", service.run_now),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Series]:  # noqa: ARG002  Django's signature
        """Return all series."""
        return Series.objects.using(settings.DATABASE).all()

    def get_search_results(
        self,
        request: HttpRequest,  # noqa: ARG002  Django's signature
        queryset: QuerySet[Series],
        search_term: str,
    ) -> tuple[QuerySet[Series], bool]:
        """Find those whose name or type begins with what was typed."""
        term = search_term.strip()
        return (queryset.filter(Q(name__startswith=term) | Q(type__startswith=term)) if term else queryset), False

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Series | None:
        """Return the series with its next slots: those of the row, whatever a form has made of it since."""
        found: Any = super().get_object(request, object_id, from_field)
        if found is not None:
            found.slots = service.preview(found)
            found.clock = ZoneInfo(found.zone) if found.slots else None  # it may be one that is not known any more
        return found  # type: ignore[no-any-return]

    def get_fieldsets(self, request: HttpRequest, obj: Series | None = None) -> Any:  # noqa: ARG002  Django's signature
        """Return how it stands before what it is."""
        parts: list[tuple[str, Any]] = [
            ("What it makes", _WHAT),
            ("When", _WHEN),
            ("Missed slots, and runs that overlap", _MISSED),
        ]
        if obj is not None:
            fault = ("fault",) if obj.fault else ()
            parts.insert(0, ("How it stands", (*_STANDS, *fault, "preview")))
        return [(title, {"fields": fields}) for title, fields in parts]

    def get_readonly_fields(self, request: HttpRequest, obj: Series | None = None) -> tuple[str, ...]:  # noqa: ARG002
        """Return what only happens to it, and its name, which it keeps."""
        stands = ("state", "next_slot", "last_seen", "skipped", "is_declared", "last_job", "fault", "preview")
        return () if obj is None else (*stands, "name")

    def has_change_permission(self, request: HttpRequest, obj: Series | None = None) -> bool:
        """Refuse for what the code declares."""
        return super().has_change_permission(request, obj) and not (obj and obj.declared)

    def has_view_permission(self, request: HttpRequest, obj: Series | None = None) -> bool:  # noqa: ARG002  Django's
        """Whoever may change series may also look at those that the code declares."""
        return super().has_view_permission(request)

    def has_delete_permission(self, request: HttpRequest, obj: Series | None = None) -> bool:
        """Refuse for what the code declares."""
        return super().has_delete_permission(request, obj) and not (obj and obj.declared)

    def get_deleted_objects(
        self,
        objs: Any,
        request: HttpRequest,  # noqa: ARG002  Django's signature
    ) -> tuple[list[Any], dict[str, int], set[str], list[str]]:
        """Name the series alone: its slots go with it, and may be too many to be listed."""
        return [str(one) for one in objs], {}, set(), []

    def save_model(self, request: HttpRequest, obj: Series, form: SeriesForm, change: bool) -> None:  # noqa: ARG002
        """Save through the service."""
        if not change:
            obj.pk = service.make_series(**form.given()).pk
        elif changes := form.given():
            service.edit_series(service.get_series(obj.name), **changes)

    def delete_model(self, request: HttpRequest, obj: Series) -> None:  # noqa: ARG002  Django's signature
        """Remove through the service."""
        service.delete_series(obj)

    @admin.display(description="state")
    def state(self, series: Series) -> str:
        """Return whether it fires, and if not why."""
        if series.fault:
            return presentation.with_title(presentation.tag("Faulty", "failed"), series.fault)
        return presentation.tag("Paused", "cancelled") if series.paused else presentation.tag("On", "completed")

    @admin.display(description="name")
    def title(self, series: Series) -> str:
        """Return its name."""
        return series.name

    @admin.display(description="rule")
    def rule(self, series: Series) -> str:
        """Return its rule as it was given."""
        return f"{series.rule_text} after the end" if series.mode == "after" else series.rule_text

    @admin.display(description="next slot")
    def next_slot(self, series: Series) -> str:
        """Return the next slot."""
        return presentation.moment(series.next_at)

    @admin.display(description="last slot")
    def last_seen(self, series: Series) -> str:
        """Return the latest slot that was dealt with."""
        return presentation.moment(series.last_slot)

    @admin.display(description="declared in code")
    def is_declared(self, series: Series) -> str:
        """Return whether the code declares it, where it is edited."""
        return "Yes: edit it there" if series.declared else presentation.NOTHING

    @admin.display(description="next slots")
    def preview(self, series: Any) -> str:
        """Return the next five slots, by the clock of its zone."""
        shown = [f"{slot.astimezone(series.clock):%a %Y-%m-%d %H:%M:%S %Z}" for slot in series.slots]
        return presentation.block("\n".join(shown))

    @admin.display(description="last job")
    def last_job(self, series: Series) -> str:
        """Return the job that it made last, with a way to it."""
        return _job_link(series.last_job_id, self.admin_site.name)


def _job_link(job_id: uuid.UUID | None, site: str) -> str:
    if job_id is None:
        return presentation.NOTHING
    return presentation.link(reverse("admin:dilamme_job_change", args=[job_id], current_app=site), job_id)
