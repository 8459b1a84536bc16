"""What all pages here have in common: no list costs more than a bounded query, and no address asks for more.

It knows no model. Where rows only come from services, Django's own machinery for forms, additions and deletions is
switched off rather than reused.
"""

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.core.exceptions import BadRequest, ValidationError
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.forms.widgets import Script
from django.http import HttpRequest, HttpResponse
from django.utils.functional import cached_property

from jobs.admin.presentation import NOTHING

if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin[Any]
    _Paginator = Paginator[Any]
else:  # they cannot be subscripted when the program runs
    _ModelAdmin = admin.ModelAdmin
    _Paginator = Paginator

COUNTED = 10_000  # rows that a list counts and pages through; to see more, filter


class BoundedPaginator(_Paginator):
    """Counts no further than `COUNTED`, so that a list of millions opens as fast as one of hundreds."""

    object_list: QuerySet[Any]

    @cached_property
    def count(self) -> int:
        """Return the number of rows, at most `COUNTED`."""
        return self.object_list.order_by()[:COUNTED].count()

    @property
    def is_cut(self) -> bool:
        """Whether there may be more rows than were counted."""
        return self.count >= COUNTED


class BoundedAdmin(_ModelAdmin):
    """A list that opens fast, and obeys nothing in its address but what it offers."""

    list_per_page = 50
    paginator = BoundedPaginator
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER  # a count per choice reads the whole table
    sortable_by = ()
    empty_value_display = NOTHING

    class Media:
        css = {"all": ["dilamme/dilamme.css"]}
        js = [Script("dilamme/live.js", defer=True)]

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:  # noqa: ARG002
        """Refuse Django's free lookups: a regular expression from an address bar may keep the database busy."""
        return any(lookup == getattr(known, "parameter_name", None) for known in self.list_filter)

    def response_action(
        self, request: HttpRequest, queryset: QuerySet[Any], *args: Any, **kwargs: Any
    ) -> HttpResponse | None:
        """Run an action; a selection that the page cannot have sent is a bad request."""
        try:
            return super().response_action(request, queryset, *args, **kwargs)
        except ValidationError as error:
            raise BadRequest(f"This is no selection: {error}") from None


class ReadOnlyAdmin(BoundedAdmin):
    """A list and a detail page without forms."""

    def has_add_permission(self, request: HttpRequest) -> bool:  # noqa: ARG002  Django's signature
        """Refuse: rows are made elsewhere."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002  Django's signature
        """Refuse: rows are changed elsewhere."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002  Django's signature
        """Refuse: rows are removed elsewhere."""
        return False
