"""Owns the command line of the delayed scheduler: a demonstration, and tools for a journal file.

It never does what the modules that it calls do not; it parses, calls and prints. Exit status: 0 when all is well, 1
when a file is damaged or cannot be used, 2 when the command is wrong.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from scheduling.backoff import Backoff
from scheduling.delayed import DelayedScheduler
from scheduling.entries import Entry
from scheduling.journal import JournalError
from scheduling.repair import inspect, repair


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.command(options))
    except (JournalError, OSError, ValueError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m scheduling", description="A delayed scheduler with a journal.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command, text in (
        (_demo, "schedule numbered entries and print when each fires; kill it, and start it again on the same file"),
        (_inspect, "print what a journal holds; changes nothing"),
        (_repair, "cut a damaged journal where its good records end, keeping the damaged file"),
    ):
        sub = commands.add_parser(command.__name__.strip("_"), help=text, description=text)
        sub.add_argument("file", type=Path, metavar="FILE", help="the journal")
        sub.set_defaults(command=command)
        if command is _demo:
            sub.add_argument("--entries", type=int, default=10, help="how many (default: %(default)s)")
            sub.add_argument("--spacing", type=float, default=1.0, help="seconds between two (default: %(default)s)")
    return parser


def _demo(options: argparse.Namespace) -> int:
    def fire(entry: Entry) -> None:
        late = (time.time() - entry.due) * 1000
        again = "" if entry.attempt == 1 else f", attempt {entry.attempt}"
        _say(f"fired {entry.payload.decode()}, {late:.1f} ms after its time{again}")

    with DelayedScheduler(options.file, backoff=Backoff(factor=2.0)) as scheduler:
        if scheduler.torn is not None:
            _say(f"cut {scheduler.torn.size} bytes of an unfinished write")
        if len(scheduler):
            _say(f"going on with {len(scheduler)} entries")
        else:
            now = time.time()
            for number in range(1, options.entries + 1):
                scheduler.enqueue(b"%d" % number, delay=number * options.spacing, now=now)
                _say(f"scheduled {number} in {number * options.spacing:g} s")
        scheduler.run(fire, drain=True)
    _say("nothing is left")
    return 0


def _inspect(options: argparse.Namespace) -> int:
    found = inspect(options.file)
    counts = ", ".join(f"{number} {kind}" for kind, number in sorted(found.records.items()))
    _say(f"size       {found.size} bytes, {found.snapshot_size} of them the last snapshot")
    _say(f"records    {found.records.total()}: {counts or 'none'}")
    _say(f"pending    {len(found.book.pending)}, {len(found.book.started)} of them in flight")
    _say(f"dead       {len(found.book.dead)}")
    for entry, text in found.book.dead.values():
        _say(f"           entry {entry.id} after {entry.attempt} attempts: {text.splitlines()[0] if text else ''}")
    if found.damage is None:
        _say("damage     none")
        return 0
    kind = "a torn tail, which the next opening cuts" if found.damage.torn else "damage, see `repair`"
    _say(f"damage     {found.damage.size} bytes from byte {found.damage.offset}: {kind}; {found.damage.reason}")
    return 1


def _repair(options: argparse.Namespace) -> int:
    done = repair(options.file)
    if done is None:
        _say("nothing to repair")
        return 0
    damage, kept = done
    _say(f"cut {damage.size} bytes from byte {damage.offset} on ({damage.reason}); the damaged file is {kept}")
    return 0


def _say(text: str) -> None:
    # Flushed, so that what was said is not lost when the demonstration is killed.
    print(text, flush=True)  # noqa: T201 - a command prints


if __name__ == "__main__":
    sys.exit(main())
