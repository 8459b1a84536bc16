"""How history ends: jobs that are over for longer than the retention are removed, in batches, oldest first.

A job that belongs to a graph goes with its whole graph and not before: what still runs may read what its parents
returned, and a retry needs its edges. Nothing here touches a job that is not final.
"""

import uuid
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

from jobs.conf import settings
from jobs.queries import Session

_BATCH = 1000  # jobs looked at in one transaction
_BATCHES = 20  # of one call
_LARGEST = 50_000  # jobs of a graph that is looked at; a larger one stays
_START = uuid.UUID(int=0)


class Retention:
    """Goes through the jobs from the oldest on, a piece at each call, and begins anew at the end."""

    def __init__(self) -> None:
        self._behind = _START

    def prune(self, session: Session) -> int:
        """Remove some jobs that are over; returns how many. Nothing without `RETENTION`, or while another prunes."""
        if not settings.RETENTION:
            return 0
        removed = 0
        for _ in range(_BATCHES):
            seen, count = self._prune_batch(session)
            removed += count
            if seen < _BATCH:
                self._behind = _START
                break
        return removed

    def _prune_batch(self, session: Session) -> tuple[int, int]:
        retention = settings.RETENTION
        with session.transaction():
            if not session.fetch("try_sweep", sweep="retention")[0][0]:
                return 0, 0
            ((now,),) = session.fetch("clock")
            before = _first_id_of(now - timedelta(seconds=retention))
            rows = session.fetch(
                "prune_candidates", retention=retention, behind=self._behind, before=before, room=_BATCH
            )
            if not rows:
                return 0, 0
            self._behind = rows[-1][0]
            alone = [id_ for id_, is_over, has_edges in rows if is_over and not has_edges]
            removed = _remove(session, alone, together=False) if alone else 0
            joined = [id_ for id_, is_over, has_edges in rows if is_over and has_edges]
            for graph in _finished_graphs(session, joined) if joined else ():
                removed += _remove(session, graph, together=True)
        return len(rows), removed


def _remove(session: Session, ids: Sequence[uuid.UUID], *, together: bool) -> int:
    rows = session.fetch("prune", ids=list(ids), retention=settings.RETENTION, together=together)
    return int(rows[0][0])


def _finished_graphs(session: Session, ids: list[uuid.UUID]) -> Iterable[list[uuid.UUID]]:
    """Return the graphs of these jobs of which every job is over."""
    edges = session.fetch("connected", ids=ids, retention=settings.RETENTION, limit=_LARGEST)
    if len(edges) >= _LARGEST:
        return
    neighbours: defaultdict[uuid.UUID, list[uuid.UUID]] = defaultdict(list)
    is_over: dict[uuid.UUID, bool] = {}
    for parent, child, parent_is_over, child_is_over in edges:
        neighbours[parent].append(child)
        neighbours[child].append(parent)
        is_over[parent], is_over[child] = parent_is_over, child_is_over
    remaining = set(neighbours)
    while remaining:
        graph = _taken_with(remaining.pop(), neighbours)
        remaining.difference_update(graph)
        if all(is_over[id_] for id_ in graph):
            yield sorted(graph)


def _taken_with(start: uuid.UUID, neighbours: "defaultdict[uuid.UUID, list[uuid.UUID]]") -> set[uuid.UUID]:
    seen, todo = {start}, [start]
    while todo:
        new = [other for other in neighbours[todo.pop()] if other not in seen]
        seen.update(new)
        todo += new
    return seen


def _first_id_of(moment: datetime) -> uuid.UUID:
    """Return an id below all that were made at a time or later (UUID version 7)."""
    milliseconds = int(moment.astimezone(UTC).timestamp() * 1000)
    return uuid.UUID(int=max(0, milliseconds) << 80)
