"""A bar on the terminal for what takes minutes: how many steps are done, and which one is under way."""

import sys

_WIDTH = 24  # characters


class Bar:
    """Printed on stderr: drawn over itself on a terminal, a line for each step elsewhere."""

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._begun = 0
        self._is_terminal = sys.stderr.isatty()

    def begin(self, step: str) -> None:
        """Say that the next step is under way."""
        filled = _WIDTH * self._begun // self._steps
        self._begun += 1
        self._print(f"[{'#' * filled:<{_WIDTH}}] {self._begun}/{self._steps} {step}")

    def end(self) -> None:
        """Say that all is done."""
        self._print(f"[{'#' * _WIDTH}] done")
        if self._is_terminal:
            print(file=sys.stderr)

    def _print(self, text: str) -> None:
        if self._is_terminal:
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
        else:
            print(text, file=sys.stderr, flush=True)
