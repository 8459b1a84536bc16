"""The heap and the timing wheel against each other and against their floors, by size. Needs no database.

What is measured, and how, stands in `scheduling/comparison.py`; this chooses the sizes, and prints.
"""

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from scheduling.comparison import FLOORS, MEASURES, Comparison, compare
from scheduling.contenders import CONTENDERS

_SIZES = "1000,10000,100000,1000000"
_LARGEST = 10_000_000
_LONG = 100_000  # from here on a size takes long enough to want to know how far it is
_LABELS = {
    "insert_ms": "insert all, ms",
    "retrieve_ms": "retrieve one by one, ms",
    "drain_ms": "drain at once, ms",
    "cancel_ms": "cancel all, ms",
    "tick_us": "tick with nothing due, µs",
    "bytes_per_entry": "memory, bytes per entry",
}
_TITLES = {"heap": "heap", "wheel": "wheel", "heapq": "heapq floor", "dict": "dict floor"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--sizes", type=_sizes, default=_SIZES, help="How many entries, by commas; %(default)s.")
    parser.add_argument("--json", type=Path, help="Write the figures there as well.")


def run(options: argparse.Namespace) -> None:
    """Measure one size after the other, and print each as soon as it is known."""
    found: dict[str, Any] = {"machine": machine(), "python": platform.python_version(), "sizes": []}
    for n in options.sizes:
        started = time.perf_counter()
        comparison = compare(n, progress=_say if n >= _LONG else lambda _: None)
        print(table(comparison), flush=True)
        found["sizes"].append(as_json(comparison) | {"seconds": time.perf_counter() - started})
        if options.json:  # after each size, so that nothing is lost when a long one is broken off
            options.json.write_text(json.dumps(found, indent=2))


def machine() -> dict[str, Any]:
    """Return what the figures depend on beside the code."""
    return {"cpu": _cpu(), "cores": os.cpu_count(), "system": platform.platform()}


def as_json(comparison: Comparison) -> dict[str, Any]:
    """Return the comparison with the ratio of each structure to its floor."""
    ratios = {
        name: {measure: comparison.ratio(measure, name, floor) for measure in MEASURES}
        for name, floor in FLOORS.items()
    }
    return asdict(comparison) | {"ratios_to_floor": ratios}


def table(comparison: Comparison) -> str:
    """Return the figures of one size as text: a row for each measure, a column for each structure, then the ratios."""
    heads = [_TITLES[name] for name in CONTENDERS] + [f"{name} / {floor}" for name, floor in FLOORS.items()]
    lines = [f"\n{comparison.n:,} entries, median of {comparison.runs} runs", _line("", heads)]
    for measure in MEASURES:
        values = [_shown(getattr(comparison.figures[name], measure)) for name in CONTENDERS]
        ratios = [f"{comparison.ratio(measure, name, floor):.1f}" for name, floor in FLOORS.items()]
        lines.append(_line(_LABELS[measure], [*values, *ratios]))
    return "\n".join(lines)


def _say(text: str) -> None:
    print(text, file=sys.stderr)


def _line(label: str, cells: Sequence[str]) -> str:
    return f"{label:<26}" + "".join(f"{cell:>14}" for cell in cells)


def _shown(value: float) -> str:
    """Return a number with three digits that count, and no fraction from a hundred on."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _sizes(text: str) -> list[int]:
    sizes = []
    for part in text.split(","):
        number = part.strip().replace("_", "")
        if not (number.isascii() and number.isdigit() and 1 <= int(number) <= _LARGEST):
            raise argparse.ArgumentTypeError(
                f"{part.strip()!r} is no size: give whole numbers from 1 to {_LARGEST:,}, with commas, as {_SIZES}"
            )
        sizes.append(int(number))
    return sizes


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")
