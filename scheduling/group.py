"""Owns group commit: many threads that each want something durable, and as few commits as that takes.

It never writes anything itself; it is given the function that does. The thread that opens a group leads it: it waits
for the commit under way to end, then commits for everybody who has joined by then, while the others sleep until the
group is settled. Joining is O(1). Source: Gray and Reuter, "Transaction Processing", 1993, 9.4.6; DeWitt et al.,
"Implementation Techniques for Main Memory Database Systems", SIGMOD 1984.
"""

import threading
from collections.abc import Callable
from typing import Final

_PATIENCE: Final = 0.1
"""Seconds after which a follower looks whether its leader was interrupted and has left."""


class _Group:
    """Parts that are committed together, and how that ended."""

    __slots__ = ("count", "error", "parts", "place", "settled", "size")

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.count = 0
        self.size = 0
        self.place = 0
        self.error: Exception | None = None
        self.settled = threading.Event()

    def add(self, part: bytes, count: int) -> int:
        start = self.size
        self.parts.append(part)
        self.size += len(part)
        self.count += count
        return start


class GroupCommit:
    """Collects what many threads submit and commits it in groups, one at a time.

    commit: called with the joined parts and the number of records in them; returns their place, or raises an
        Exception, which then everybody of that group gets.
    limit: bytes beyond which another group is opened; a single part may be larger.
    commits: the lock that is held during a commit; whoever takes it keeps commits out.
    """

    def __init__(self, commit: Callable[[bytes, int], int], limit: int) -> None:
        self.commits: Final = threading.Lock()
        self._commit = commit
        self._limit = limit
        self._joins = threading.Lock()
        self._gathering: _Group | None = None

    def submit(self, part: bytes, count: int) -> int:
        """Return the place of `part`, which holds `count` records, once it is committed. Raises what `commit` does."""
        group, start, leads = self._join(part, count)
        if leads:
            self._lead(group)
        # A leader interrupted by a signal handler leaves its group unsettled: then one of the others leads.
        while not group.settled.wait(_PATIENCE):
            self._lead(group)
        if group.error is not None:
            raise group.error
        return group.place + start

    def _join(self, part: bytes, count: int) -> tuple[_Group, int, bool]:
        with self._joins:
            group = self._gathering
            leads = group is None or group.size + len(part) > self._limit
            if group is None or leads:
                group = self._gathering = _Group()
            return group, group.add(part, count), leads

    def _lead(self, group: _Group) -> None:
        """Commit a group, unless somebody has; who comes from now on is of the next one."""
        with self.commits:
            if group.settled.is_set():
                return
            with self._joins:
                if self._gathering is group:
                    self._gathering = None
            try:
                group.place = self._commit(b"".join(group.parts), group.count)
            except Exception as error:  # noqa: BLE001 - raised again, in each thread of the group
                group.error = error
            group.settled.set()
