"""The command line: `python -m bench MEASUREMENT`, each with options of its own; `--help` lists them.

A measurement is a line in `MEASUREMENTS`, and a module with `add_arguments(parser)` and `run(options)`.
"""

import argparse
from collections.abc import Sequence
from types import ModuleType

from bench import on_database, structures
from bench.peers import runner

MEASUREMENTS: dict[str, tuple[ModuleType, str]] = {
    "drain": (on_database, "how fast workers empty a queue of jobs that do nothing"),
    "latency": (on_database, "how soon an idle worker starts a job after its commit"),
    "enqueue": (on_database, "how fast jobs are made, one by one and in bulk"),
    "together": (on_database, "how fast several processes enqueue at once, with and without notifications"),
    "ontime": (on_database, "how close to its time a scheduled job starts"),
    "backlog": (on_database, "what a million jobs for later, or done, and a held snapshot cost a drain"),
    "profile": (on_database, "what one job costs the server, statement by statement, and the worker"),
    "mixed": (on_database, "how near to the ideal handlers run that take their time"),
    "ceiling": (on_database, "what bare SQL can do on this server"),
    "peers": (runner, "other job queues beside Dilamme, doing the same work"),
    "structures": (structures, "the heap and the timing wheel against each other and their floors; needs no database"),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser("python -m bench", description="Measures Dilamme.")
    commands = parser.add_subparsers(dest="measurement", required=True, metavar="MEASUREMENT")
    for name, (module, text) in MEASUREMENTS.items():
        module.add_arguments(commands.add_parser(name, help=text, description=f"Measures {text}."))
    options = parser.parse_args(arguments)
    module, _ = MEASUREMENTS[options.measurement]
    module.run(options)


if __name__ == "__main__":
    main()
