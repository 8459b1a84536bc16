"""What can be done to a row besides editing it: as an action on the list, and as a button of its page.

Each has its permission, is done by a service, and is kept in Django's log of who did what.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html, format_html_join
from django.views.decorators.http import require_POST

from jobs.admin.base import BoundedAdmin
from jobs.admin.presentation import link
from jobs.errors import DilammeError
from jobs.models import Job

_NAMED = 5  # rows that are named in one message


@dataclass(frozen=True, slots=True)
class Press:
    """One thing that can be done: how it is called before and after, who may, and what does it."""

    name: str
    label: str
    done: str
    permission: str
    act: Callable[[Any], Any]
    fits: Callable[[Any], bool] = lambda _: True  # whether its button is shown


@dataclass(frozen=True, slots=True)
class ShownPress:
    """A button on a page."""

    name: str
    label: str
    address: str


class PressableAdmin(BoundedAdmin):
    """A list with actions, and pages with the same as buttons."""

    presses: Sequence[Press] = ()

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        """Return what this user may do; Django's own deletion is not among it, since it asks no service."""
        return {
            f"{press.name}_selected": (_action(press), f"{press.name}_selected", f"{press.label} selected {self._many}")
            for press in self.presses
            if self.may(request, press)
        }

    def get_urls(self) -> list[URLPattern]:
        """Add the buttons; they go first, because Django's last route takes everything."""
        own = [
            path(
                f"<path:object_id>/{press.name}/",
                self.admin_site.admin_view(require_POST(functools.partial(self._press, press))),
                name=f"dilamme_{self.opts.model_name}_{press.name}",
            )
            for press in self.presses
        ]
        return [*own, *super().get_urls()]

    def render_change_form(  # noqa: PLR0917  Django's signature
        self,
        request: HttpRequest,
        context: dict[str, Any],
        add: bool = False,
        change: bool = False,
        form_url: str = "",
        obj: Any = None,
    ) -> HttpResponse:
        """Add the buttons to the page."""
        if obj is not None:
            fitting = [press for press in self.presses if press.fits(obj) and self.may(request, press)]
            context["presses"] = [
                ShownPress(press.name, press.label, self.address_of(press.name, obj.pk)) for press in fitting
            ]
        return super().render_change_form(request, context, add, change, form_url, obj)

    def may(self, request: HttpRequest, press: Press) -> bool:
        """Whether this user may do it; who may not see rows cannot change them unseen."""
        return self.has_view_permission(request) and request.user.has_perm(press.permission)

    def address_of(self, page: str, key: int | str) -> str:
        """Return the address of a page or a button of one row."""
        name = f"admin:dilamme_{self.opts.model_name}_{page}"
        return reverse(name, args=[quote(key)], current_app=self.admin_site.name)

    def press_all(self, press: Press, request: HttpRequest, rows: QuerySet[Any] | Sequence[Any]) -> None:
        """Do it to each row, and say to which it was done."""
        done = []
        for row in rows:
            try:
                result = press.act(row)
            except DilammeError as error:
                self.message_user(request, f"Not done for {row}: {error}", messages.ERROR)
            else:
                self.log_change(request, row, press.label)
                done.append((self._told(row, result),))
        if done:
            named = format_html_join(", ", "{}", done[:_NAMED])
            more = f" and {len(done) - _NAMED} more" if len(done) > _NAMED else ""
            self.message_user(request, format_html("{}: {}{}.", press.done, named, more), messages.SUCCESS)

    @property
    def _many(self) -> str:
        return str(self.opts.verbose_name_plural)

    def _told(self, row: Any, result: Any) -> str:
        if not isinstance(result, Job):
            return str(row)
        address = reverse("admin:dilamme_job_change", args=[result.pk], current_app=self.admin_site.name)
        return format_html("{} as the job {}", row, link(address, result.pk))

    def _press(self, press: Press, request: HttpRequest, object_id: str) -> HttpResponse:
        """Do what a button says, and go back to the row, or to the list if it has gone."""
        if not self.may(request, press):
            raise PermissionDenied
        key = unquote(object_id)
        if (row := self.get_object(request, key)) is not None:
            self.press_all(press, request, [row])
            if self.get_object(request, key) is not None:
                return HttpResponseRedirect(self.address_of("change", key))
        else:
            self.message_user(request, "What you asked for is not there any more.", messages.WARNING)
        address = f"admin:dilamme_{self.opts.model_name}_changelist"
        return HttpResponseRedirect(reverse(address, current_app=self.admin_site.name))


def _action(press: Press) -> Callable[[Any, HttpRequest, QuerySet[Any]], None]:
    def act(admin: PressableAdmin, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        admin.press_all(press, request, queryset)

    return act
