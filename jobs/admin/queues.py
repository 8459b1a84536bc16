"""The lists of queues and of paused types: limits and pauses, set through `jobs.queues`."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from jobs import queues as service
from jobs.admin import presentation
from jobs.conf import settings
from jobs.errors import InvalidJob
from jobs.models import PausedType, Queue

_LIMITS = ("concurrency", "concurrency_per_key", "rate", "burst")


class QueueForm(forms.ModelForm):  # type: ignore[type-arg]  # not subscriptable when the program runs
    """The name of a queue, and its limits."""

    class Meta:
        model = Queue
        fields = ("name", *_LIMITS)

    def clean(self) -> dict[str, Any]:
        """Refuse limits out of range, at the field that is wrong."""
        cleaned: dict[str, Any] = super().clean() or {}
        if not self.errors:
            try:
                service.check_limits(**{name: cleaned.get(name) for name in _LIMITS})
            except InvalidJob as error:
                self.add_error(error.field, str(error))
        return cleaned


class _Pausing(admin.ModelAdmin):  # type: ignore[type-arg]  # not subscriptable when the program runs
    """What both lists share: whoever may pause may do everything here."""

    list_per_page = 50
    show_full_result_count = False

    class Media:
        css = {"all": ["dilamme/dilamme.css"]}

    def has_pause_permission(self, request: HttpRequest) -> bool:
        """Whether somebody may hold back queues and types."""
        return request.user.has_perm("dilamme.pause_queue")

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Whether somebody may hold back another one."""
        return self.has_pause_permission(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002  Django's signature
        """Whether somebody may change what is held back."""
        return self.has_pause_permission(request)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002  Django's signature
        """Refuse: what is let go has no limits, and is shown so."""
        return False


@admin.register(Queue)
class QueueAdmin(_Pausing):
    """Queues that are or were held back."""

    form = QueueForm
    list_display = ("state", "name", *_LIMITS, "pause_ends")
    list_display_links = ("name",)
    ordering = ("name",)
    actions = ("pause_selected", "resume_selected")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Queue]:  # noqa: ARG002  Django's signature
        """Return all queues with a row."""
        return Queue.objects.using(settings.DATABASE).all()

    def get_readonly_fields(self, request: HttpRequest, obj: Queue | None = None) -> tuple[str, ...]:  # noqa: ARG002
        """A queue keeps its name."""
        return () if obj is None else ("name",)

    def save_model(self, request: HttpRequest, obj: Queue, form: QueueForm, change: bool) -> None:  # noqa: ARG002
        """Save through the service."""
        service.limit_queue(obj.name, **{name: getattr(obj, name) for name in _LIMITS})

    @admin.display(description="state")
    def state(self, queue: Queue) -> str:
        """Return whether jobs of it are started."""
        return presentation.tag("Paused", "pending") if queue.paused else presentation.tag("On", "completed")

    @admin.display(description="pause ends")
    def pause_ends(self, queue: Queue) -> str:
        """Return when its pause is over by itself."""
        return presentation.moment(queue.paused_until if queue.paused else None)

    @admin.action(description="Pause", permissions=["pause"])
    def pause_selected(self, request: HttpRequest, queryset: QuerySet[Queue]) -> None:
        """Start no job of them."""
        for queue in queryset:
            service.pause_queue(queue.name)
        self.message_user(request, f"{len(queryset)} queues paused.", messages.SUCCESS)

    @admin.action(description="Resume", permissions=["pause"])
    def resume_selected(self, request: HttpRequest, queryset: QuerySet[Queue]) -> None:
        """Let them go on."""
        for queue in queryset:
            service.resume_queue(queue.name)
        self.message_user(request, f"{len(queryset)} queues resumed.", messages.SUCCESS)


@admin.register(PausedType)
class PausedTypeAdmin(_Pausing):
    """Types of which no job is started; adding one pauses it."""

    list_display = ("type", "until")
    fields = ("type", "until")
    ordering = ("type",)
    actions = ("resume_selected",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[PausedType]:  # noqa: ARG002  Django's signature
        """Return all paused types."""
        return PausedType.objects.using(settings.DATABASE).all()

    def save_model(self, request: HttpRequest, obj: PausedType, form: Any, change: bool) -> None:  # noqa: ARG002
        """Save through the service."""
        try:
            service.pause_type(obj.type, until=obj.until)
        except InvalidJob as error:
            self.message_user(request, str(error), messages.ERROR)

    @admin.action(description="Resume", permissions=["pause"])
    def resume_selected(self, request: HttpRequest, queryset: QuerySet[PausedType]) -> None:
        """Let them go on."""
        names = [paused.type for paused in queryset]
        for name in names:
            service.resume_type(name)
        self.message_user(request, f"{len(names)} types resumed.", messages.SUCCESS)
