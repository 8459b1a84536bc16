"""The lists of queues and of paused types: limits and pauses, set through `jobs.queues`."""

from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.admin.widgets import AdminSplitDateTime
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from jobs import queues as service
from jobs.admin import presentation
from jobs.admin.forms import refuse
from jobs.admin.pressing import Press, PressableAdmin
from jobs.conf import settings
from jobs.errors import DilammeError
from jobs.limits import valid_name
from jobs.models import PausedType, Queue

_LIMITS = ("concurrency", "concurrency_per_key", "rate", "burst")


class QueueForm(forms.ModelForm):  # type: ignore[type-arg]  # not subscriptable when the program runs
    """The name of a queue, its limits, and until when no job of it is started."""

    until = forms.SplitDateTimeField(
        label="Pause until",
        required=False,
        widget=AdminSplitDateTime,
        help_text="Goes on by itself then. A paused queue without a time waits until somebody resumes it.",
        show_hidden_initial=True,  # what somebody else has changed meanwhile is not changed back
    )

    class Meta:
        model = Queue
        fields = ("name", *_LIMITS)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.is_paused:
            self.initial["until"] = self.instance.paused_until

    @property
    def pauses(self) -> bool:
        """Whether the time was changed."""
        return "until" in self.changed_data

    def clean(self) -> dict[str, Any]:
        """Refuse what the service would refuse, at the field that is wrong; it knows all that the model does."""
        if not self.errors:
            name = self.cleaned_data.get("name", self.instance.name)
            try:
                service.check_limits(name, **{limit: self.cleaned_data[limit] for limit in _LIMITS})
                if self.pauses:
                    service.check_pause("queue", name, self.cleaned_data["until"])
            except DilammeError as error:
                refuse(self, error, queue="name")
        return self.cleaned_data


class PausedTypeForm(forms.ModelForm):  # type: ignore[type-arg]  # not subscriptable when the program runs
    """A type, and until when no job of it is started."""

    class Meta:
        model = PausedType
        fields = ("type", "until")

    def clean(self) -> dict[str, Any]:
        """Refuse what the service would refuse."""
        if not self.errors:
            name = self.cleaned_data.get("type", self.instance.type)
            try:
                service.check_pause("type", name, self.cleaned_data["until"])
            except DilammeError as error:
                refuse(self, error)
        return self.cleaned_data


class _HoldingBack(PressableAdmin):
    """What both lists share: whoever may pause may do everything here, and nothing is deleted."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Whether somebody may hold back another one."""
        return request.user.has_perm("dilamme.pause_queue")

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002  Django's signature
        """Whether somebody may change what is held back."""
        return request.user.has_perm("dilamme.pause_queue")

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002  Django's signature
        """Refuse: what is let go has no limits, and is shown so."""
        return False


@admin.register(Queue)
class QueueAdmin(_HoldingBack):
    """Queues that are or were held back; below them those that have jobs and no limits."""

    form = QueueForm
    list_display = ("state", "title", "waiting", "running", *_LIMITS)
    list_display_links = ("title",)
    ordering = ("name",)
    presses = (
        Press(
            "pause", "Pause", "Paused", "dilamme.pause_queue",
            lambda queue: service.pause_queue(queue.name), lambda queue: not queue.is_paused,
        ),
        Press(
            "resume", "Resume", "Resumed", "dilamme.pause_queue",
            lambda queue: service.resume_queue(queue.name), lambda queue: queue.is_paused,
        ),
    )  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> QuerySet[Queue]:  # noqa: ARG002  Django's signature
        """Return all queues with a row."""
        return Queue.objects.using(settings.DATABASE).all()

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Show the list with counts, and the queues that have jobs and no row."""
        response = super().changelist_view(request, extra_context)
        context: dict[str, Any] = getattr(response, "context_data", None) or {}
        if (shown := context.get("cl")) is None:
            return response
        counted = {queue.name: (queue, counts) for queue, counts in service.all_queues()}
        for queue in shown.result_list:
            _, queue.counts = counted.get(queue.name, (queue, service.Counts(0, 0)))
        context["others"] = [
            {"queue": queue, "counts": counts, "address": self.address_of("change", queue.name)}
            for queue, counts in counted.values()
            if queue._state.adding  # noqa: SLF001  Django's own word for "has no row"
        ]
        return response

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Queue | None:
        """Return the queue; one without a row is neither paused nor limited, and may be."""
        found: Queue | None = super().get_object(request, object_id, from_field) if valid_name(object_id) else None
        return found or (Queue(name=object_id) if valid_name(object_id) else None)

    def get_fieldsets(self, request: HttpRequest, obj: Queue | None = None) -> Any:  # noqa: ARG002  Django's signature
        """Return its name, limits and pause, and of one that there is how it stands."""
        stands = [] if obj is None else [(None, {"fields": (("title", "state", "waiting", "running"),)})]
        limits = ("Limits", {"fields": (*([] if obj else ["name"]), *_LIMITS)})
        return [*stands, limits, ("Pause", {"fields": ("until",)})]

    def get_readonly_fields(self, request: HttpRequest, obj: Queue | None = None) -> tuple[str, ...]:  # noqa: ARG002
        """A queue keeps its name."""
        return () if obj is None else ("name", "title", "state", "waiting", "running")

    def save_model(self, request: HttpRequest, obj: Queue, form: QueueForm, change: bool) -> None:  # noqa: ARG002
        """Save through the service; a pause that was not touched here stays as it is."""
        service.limit_queue(obj.name, **{name: getattr(obj, name) for name in _LIMITS})
        if form.pauses:
            service.pause_queue(obj.name, until=form.cleaned_data["until"])

    @admin.display(description="state")
    def state(self, queue: Queue) -> str:
        """Return whether jobs of it are started, and until when not."""
        if not queue.is_paused:
            return presentation.tag("On", "completed")
        until = f"Until {presentation.full_moment(queue.paused_until)}" if queue.paused_until else "Until resumed"
        return presentation.with_title(presentation.tag("Paused", "cancelled"), until)

    @admin.display(description="pause until")
    def until(self, queue: Queue) -> str | None:
        """Return when it goes on by itself, for those who may only look."""
        return presentation.full_moment(queue.paused_until) if queue.is_paused and queue.paused_until else None

    @admin.display(description="name")
    def title(self, queue: Queue) -> str:
        """Return its name."""
        return queue.name

    @admin.display(description="pending")
    def waiting(self, queue: Any) -> int:
        """Return how many jobs wait for a worker or their time."""
        return self._counts(queue).pending

    @admin.display(description="processing")
    def running(self, queue: Any) -> int:
        """Return how many jobs run."""
        return self._counts(queue).processing

    def _counts(self, queue: Any) -> service.Counts:
        if not hasattr(queue, "counts"):
            _, queue.counts = service.one_queue(queue.name)
        found: service.Counts = queue.counts
        return found


@admin.register(PausedType)
class PausedTypeAdmin(_HoldingBack):
    """Types of which no job is started; adding one pauses it."""

    form = PausedTypeForm
    list_display = ("type", "until")
    ordering = ("type",)
    presses = (
        Press("resume", "Resume", "Resumed", "dilamme.pause_queue", lambda paused: service.resume_type(paused.type)),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[PausedType]:  # noqa: ARG002  Django's signature
        """Return all paused types."""
        return PausedType.objects.using(settings.DATABASE).all()

    def get_readonly_fields(self, request: HttpRequest, obj: PausedType | None = None) -> tuple[str, ...]:  # noqa: ARG002
        """Another type is another pause."""
        return () if obj is None else ("type",)

    def save_model(self, request: HttpRequest, obj: PausedType, form: Any, change: bool) -> None:  # noqa: ARG002
        """Save through the service."""
        service.pause_type(obj.type, until=obj.until)
