"""What the measurements of job queueing have in common: their options, a fresh database, and how figures are printed.

Each is a module with a function `measure(jobs, processes)`. It is imported once Django is set up, since handlers need
that.
"""

import argparse
import importlib
import json
import os
from pathlib import Path
from typing import Any

from bench import ceiling


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--jobs", type=int, default=None, help="How many jobs; a default for each measurement.")
    parser.add_argument("--processes", type=int, default=1, help="Worker processes (drain).")
    parser.add_argument("--json", type=Path, help="Write the figures there as well.")


def run(options: argparse.Namespace) -> None:
    """Set up a fresh database, measure, print."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "bench.settings"
    from dilamme_project import embedded  # noqa: PLC0415  before Django reads the settings

    if "DATABASE_URL" not in os.environ:
        os.environ["DATABASE_URL"] = embedded.start("bench-postgres")
    from bench import setup  # noqa: PLC0415  needs the settings' name

    with setup.fresh_database():
        if options.measurement == "ceiling":
            figures: dict[str, Any] = ceiling.measure(os.environ["DATABASE_URL"])
        else:
            measurement = importlib.import_module(f"bench.{options.measurement}")
            figures = measurement.measure(options.jobs, options.processes)
    for name, value in figures.items():
        print(f"{name:<48} {value:>12,.2f}" if isinstance(value, float) else f"{name:<48} {value:>12,}")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2))
