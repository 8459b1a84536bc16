"""Lists by name, a page at a time: what a client may ask for, and how it is led to the next page."""

from collections.abc import Sequence
from typing import Any, TypeVar

from ninja import Schema
from pydantic import Field

from jobs.api.schemas import Name

T = TypeVar("T")


class NamesQuery(Schema):
    """Which part of a list to show."""

    after: Name | None = Field(default=None, description="Only names behind this one: meta.next_after of a page.")
    limit: int = Field(default=50, ge=1, le=200)

    @property
    def wanted(self) -> dict[str, Any]:
        """Return what to ask a service for: one more than is shown tells whether there is another page."""
        return {"after": self.after, "limit": self.limit + 1}

    def shown(self, found: Sequence[T]) -> Sequence[T]:
        """Return the rows of the page."""
        return found[: self.limit]

    def meta(self, names: Sequence[str]) -> dict[str, Any]:
        """Return what the answer says of the page, from the names of all that was found."""
        return {"limit": self.limit, "next_after": names[self.limit - 1] if len(names) > self.limit else None}
