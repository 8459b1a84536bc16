"""What the loop sleeps on: anything that happens may end its sleep, from any thread and from a signal handler."""

import queue


class Wakeup:
    """An event that is safe to set inside a signal handler, where `threading.Event` can deadlock.

    Whoever sets it has first written down what happened; the sleeper looks at everything after it wakes. So several
    sets may fold into one.
    """

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[None] = queue.SimpleQueue()  # its put() is reentrant
        self._is_set = False

    def set(self) -> None:
        """End the sleep, now or as soon as it begins."""
        if not self._is_set:
            self._is_set = True
            self._calls.put(None)

    def wait(self, timeout: float) -> None:
        """Sleep until set, at most `timeout` seconds."""
        try:
            self._calls.get(timeout=max(0.0, timeout))
        except queue.Empty:
            return
        finally:
            self._is_set = False
