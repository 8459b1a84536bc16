"""The edges of jobs that are being made: what each waits for, held until they are stored.

Parents are locked, in ascending id, so that none ends between the look at it and the commit of its edge.
"""

import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jobs.drafts import Draft
from jobs.errors import InvalidJob, UnknownDependency
from jobs.queries import Session
from jobs.states import FINAL, OnFailure, Status


@dataclass(slots=True)
class Edges:
    """Parallel lists, an entry for each edge; and how many unsettled parents each job has that has any."""

    children: list[uuid.UUID] = field(default_factory=list)
    parents: list[uuid.UUID] = field(default_factory=list)
    on_failure: list[str] = field(default_factory=list)
    settled: list[bool] = field(default_factory=list)
    unmet: dict[uuid.UUID, int] = field(default_factory=dict)

    def as_arrays(self) -> dict[str, list[Any]]:
        """Return the parameters of `add_edges`."""
        return {
            "children": self.children,
            "parents": self.parents,
            "on_failure": self.on_failure,
            "settled": self.settled,
        }

    def without(self, jobs: Collection[uuid.UUID]) -> "Edges":
        """Return the edges that lead to other jobs than these, which were not made."""
        if not jobs:
            return self
        kept = [n for n, child in enumerate(self.children) if child not in jobs]
        return Edges(
            [self.children[n] for n in kept],
            [self.parents[n] for n in kept],
            [self.on_failure[n] for n in kept],
            [self.settled[n] for n in kept],
            self.unmet,
        )


def edges_of(session: Session, drafts: Sequence[Draft], parents: Mapping[uuid.UUID, Sequence[uuid.UUID]]) -> Edges:
    """Hold every parent that exists already, and return the edges of these jobs.

    Raises `UnknownDependency` and, for a parent with which a job would never run, `InvalidJob`.
    """
    own = {draft.id for draft in drafts}
    statuses = _hold(session, {parent for ids in parents.values() for parent in ids} - own)
    edges = Edges()
    for draft in drafts:
        if not (wanted := parents.get(draft.id, ())):
            continue
        rule = draft.terms.on_failure
        settled = [parent not in own and _is_settled(parent, statuses[parent], rule) for parent in wanted]
        edges.children += [draft.id] * len(wanted)
        edges.parents += wanted
        edges.on_failure += [rule] * len(wanted)
        edges.settled += settled
        edges.unmet[draft.id] = len(settled) - sum(settled)
    return edges


def _hold(session: Session, parents: Collection[uuid.UUID]) -> dict[uuid.UUID, str]:
    if not parents:
        return {}
    wanted = sorted(parents)
    statuses: dict[uuid.UUID, str] = dict(session.fetch("lock_parents", ids=wanted))
    if missing := [str(parent) for parent in wanted if parent not in statuses]:
        shown = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
        raise UnknownDependency(f"No job has the id {shown}: a job can only depend on jobs that exist.")
    return statuses


def _is_settled(parent: uuid.UUID, status: str, on_failure: str) -> bool:
    if status in FINAL and status != Status.COMPLETED and on_failure == OnFailure.CANCEL:
        raise InvalidJob(
            f"The job {parent} has the status {status}, so a job that depends on it would never run: retry it first, "
            f"or use on_failure='run'.",
            field="dependency_ids",
        )
    return status in FINAL
