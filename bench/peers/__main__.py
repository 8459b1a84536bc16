"""`python -m bench.peers`: the comparison as a command."""

import argparse
import sys

from bench.peers import runner


def main() -> int:
    """Parse, compare, print; returns 0 even if a system failed, because its line says so."""
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description=runner.__doc__)
    runner.add_arguments(parser)
    runner.run(parser.parse_args())
    return 0


if __name__ == "__main__":
    sys.exit(main())
