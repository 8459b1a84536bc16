"""The list of series and the form of one. The form asks `jobs.series` what may be saved, and saves through it."""

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from jobs import series as service
from jobs.admin import presentation
from jobs.admin.base import BoundedPaginator
from jobs.conf import settings
from jobs.errors import DilammeError, InvalidJob, UnknownType
from jobs.models import Series

_FIELDS = (
    "name", "type", "payload", "queue", "priority", "max_attempts", "interval", "cron", "zone", "mode", "catch_up",
    "catch_up_limit", "overlap", "jitter", "starts_at", "ends_at",
)  # fmt: skip


class SeriesForm(forms.ModelForm):  # type: ignore[type-arg]  # not subscriptable when the program runs
    """What of a series is edited here."""

    class Meta:
        model = Series
        fields = _FIELDS

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "starts_at" in self.fields:
            self.fields["starts_at"].required = False

    def given(self) -> dict[str, Any]:
        """Return the fields as the service takes them."""
        wanted = {name: value for name, value in self.cleaned_data.items() if name in _FIELDS}
        if wanted.get("starts_at") is None:
            wanted.pop("starts_at", None)  # now for a new one, as it is for one that is edited
        return {name: None if value == "" and name == "queue" else value for name, value in wanted.items()}

    def clean(self) -> dict[str, Any]:
        """Refuse what could never fire, at the field that is wrong."""
        cleaned: dict[str, Any] = super().clean() or {}
        if self.errors:
            return cleaned
        try:
            service.check_series(**self.given())
        except InvalidJob as error:
            self.add_error(error.field if error.field in self.fields else None, str(error))
        except UnknownType as error:
            self.add_error("type", str(error))
        return cleaned


@admin.register(Series)
class SeriesAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # not subscriptable when the program runs
    """Series by name; those that the code declares can be paused and run, and are edited there."""

    form = SeriesForm
    list_display = ("state", "name", "type", "rule", "zone", "next_slot", "skipped", "declared")
    list_display_links = ("name",)
    ordering = ("name",)
    search_fields = ("name__startswith",)
    actions = ("pause_selected", "resume_selected", "run_selected")
    list_per_page = 50
    paginator = BoundedPaginator
    show_full_result_count = False
    readonly_fields = ("state", "fault", "preview", "last_slot", "skipped", "last_job")

    class Media:
        css = {"all": ["dilamme/dilamme.css"]}

    def get_queryset(self, request: HttpRequest) -> QuerySet[Series]:  # noqa: ARG002  Django's signature
        """Return all series."""
        return Series.objects.using(settings.DATABASE).all()

    def get_fields(self, request: HttpRequest, obj: Series | None = None) -> tuple[str, ...]:  # noqa: ARG002
        """Return how it stands before what it is."""
        return _FIELDS if obj is None else (*self.readonly_fields, *_FIELDS)

    def has_change_permission(self, request: HttpRequest, obj: Series | None = None) -> bool:
        """Refuse for what the code declares."""
        return super().has_change_permission(request, obj) and not (obj and obj.declared)

    def has_delete_permission(self, request: HttpRequest, obj: Series | None = None) -> bool:
        """Refuse for what the code declares, and for whole lists."""
        return obj is not None and super().has_delete_permission(request, obj) and not obj.declared

    def has_run_permission(self, request: HttpRequest) -> bool:
        """Whether somebody may run a series now."""
        return request.user.has_perm("dilamme.run_series")

    def save_model(self, request: HttpRequest, obj: Series, form: SeriesForm, change: bool) -> None:  # noqa: ARG002
        """Save through the service."""
        if change:
            changes = {name: value for name, value in form.given().items() if name in form.changed_data}
            service.edit_series(service.get_series(form.initial["name"]), **changes)
        else:
            obj.pk = service.make_series(**form.given()).pk

    def delete_model(self, request: HttpRequest, obj: Series) -> None:  # noqa: ARG002  Django's signature
        """Remove through the service."""
        service.delete_series(obj)

    @admin.display(description="state")
    def state(self, series: Series) -> str:
        """Return whether it fires."""
        if series.fault:
            return presentation.tag("Faulty", "failed")
        return presentation.tag("Paused", "pending") if series.paused else presentation.tag("On", "completed")

    @admin.display(description="rule")
    def rule(self, series: Series) -> str:
        """Return its rule as it was given."""
        return f"{series.rule_text}, {series.mode}"

    @admin.display(description="next slot")
    def next_slot(self, series: Series) -> str:
        """Return the next slot."""
        return presentation.moment(series.next_at)

    @admin.display(description="next slots")
    def preview(self, series: Series) -> str:
        """Return the next five slots."""
        slots = [presentation.full_moment(slot) for slot in service.preview(series)]
        return presentation.block("\n".join(slots)) if slots else presentation.NOTHING

    @admin.display(description="last job")
    def last_job(self, series: Series) -> str:
        """Return the job that it made last."""
        return str(series.last_job_id or presentation.NOTHING)

    @admin.action(description="Pause", permissions=["change"])
    def pause_selected(self, request: HttpRequest, queryset: QuerySet[Series]) -> None:
        """Let them make no more jobs."""
        self._each(request, queryset, service.pause_series, "paused")

    @admin.action(description="Resume", permissions=["change"])
    def resume_selected(self, request: HttpRequest, queryset: QuerySet[Series]) -> None:
        """Let them go on with their next slots."""
        self._each(request, queryset, service.resume_series, "resumed")

    @admin.action(description="Run now", permissions=["run"])
    def run_selected(self, request: HttpRequest, queryset: QuerySet[Series]) -> None:
        """Make a job of each, beside its slots."""
        self._each(request, queryset, service.run_now, "run")

    def _each(
        self, request: HttpRequest, queryset: QuerySet[Series], act: Callable[[Series], object], done: str
    ) -> None:
        count = 0
        for series in queryset:
            try:
                act(series)
            except DilammeError as error:
                self.message_user(request, f"{series.name}: {error}", messages.ERROR)
            else:
                count += 1
        if count:
            self.message_user(request, f"{count} series {done}.", messages.SUCCESS)
