"""The command line: `python -m bench drain|latency|enqueue [--jobs N] [--processes P] [--json FILE]`."""

import argparse
import json
import os
from pathlib import Path
from typing import Any


def main() -> None:
    """Set up a fresh database, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("what", choices=["drain", "latency", "enqueue"])
    parser.add_argument("--jobs", type=int, default=None, help="How many jobs; a default for each measurement.")
    parser.add_argument("--processes", type=int, default=1, help="Worker processes (drain).")
    parser.add_argument("--json", type=Path, help="Write the figures there as well.")
    options = parser.parse_args()

    os.environ["DJANGO_SETTINGS_MODULE"] = "bench.settings"
    from dilamme_project import embedded  # noqa: PLC0415  before Django reads the settings

    if "DATABASE_URL" not in os.environ:
        os.environ["DATABASE_URL"] = embedded.start("bench-postgres")
    from bench import setup  # noqa: PLC0415  needs the settings' name

    with setup.fresh_database():
        from bench import measurements  # noqa: PLC0415  needs Django set up

        figures: dict[str, Any] = getattr(measurements, options.what)(options.jobs, options.processes)
    for name, value in figures.items():
        print(f"{name:<28} {value:>12,.2f}" if isinstance(value, float) else f"{name:<28} {value:>12,}")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
