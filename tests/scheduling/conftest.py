"""What the tests of scheduling share. It never imports Django."""

import gc
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest


@pytest.fixture
def lines_of() -> Callable[[Callable[[], object]], int]:
    """Return a function that counts the lines of Python that a call executes: its cost, free of noise."""

    def count(call: Callable[[], object]) -> int:
        lines = 0

        def trace(_frame: FrameType, event: str, _arg: object) -> Any:
            nonlocal lines
            lines += event == "line"
            return trace

        before = sys.gettrace()
        gc.disable()  # what a collection calls is not the cost of the call
        sys.settrace(trace)
        try:
            call()
        finally:
            sys.settrace(before)
            gc.enable()
        return lines

    return count
