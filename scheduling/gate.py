"""Owns the rule that a snapshot is taken of a state in which nothing is half done.

It never touches a journal. Any number of threads may be inside at once, or one that has the place to itself; who
wants that stops newcomers and waits until all have left, so it cannot be starved. Entering and leaving are O(1).
Source: Courtois, Heymans and Parnas, "Concurrent Control with Readers and Writers", CACM 14(10), 1971, the second
problem.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Gate:
    """A lock that is shared by operations and exclusive for a snapshot. It is not reentrant."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside = 0
        self._closed = False

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Be inside together with others."""
        with self._changed:
            self._changed.wait_for(lambda: not self._closed)
            self._inside += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside -= 1
                if not self._inside:
                    self._changed.notify_all()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Be inside alone."""
        with self._changed:
            self._changed.wait_for(lambda: not self._closed)
            self._closed = True
        try:
            with self._changed:
                self._changed.wait_for(lambda: not self._inside)
            yield
        finally:
            with self._changed:
                self._closed = False
                self._changed.notify_all()
