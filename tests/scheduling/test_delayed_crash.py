"""The delayed scheduler killed with SIGKILL at random moments, in a real process, many times over."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from scheduling import DelayedScheduler
from scheduling.repair import inspect

ROOT = Path(__file__).resolve().parent.parent.parent
JOURNALS = 40 if os.environ.get("DILAMME_SOAK") else 5
KILLS = 5
"""Of each journal: so 25 rounds, or 200 with DILAMME_SOAK=1."""

CHILD = """
import os, random, sys, threading, time
from scheduling import DelayedScheduler

scheduler = DelayedScheduler(sys.argv[1], max_attempts=10**6)
random.seed(int(sys.argv[2]))

def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())  # one write, so that a line is there whole or not at all

def client():
    for number in range(10**9):
        due = time.time() + random.choice([0.0, 0.001, 0.01, 0.05, 1000.0])
        made = scheduler.enqueue(b"%r" % due, due=due, now=time.time())
        say("made", made, repr(due))
        if number % 5 == 0:
            say("cancelling", made)
            if scheduler.cancel(made):
                say("cancelled", made)
        if number % 40 == 39:
            scheduler.snapshot()

for _ in range(4):
    threading.Thread(target=client, daemon=True).start()
while True:
    now = time.time()
    entries = scheduler.tick(now)
    for entry in entries:
        if entry.due > now or entry.due < float(entry.payload):
            say("early", entry.id, *entry)
        say("fired", entry.id)
    for entry in entries[::2]:
        say("ending", entry.id)
        scheduler.done(entry.id)
        say("done", entry.id)
    for entry in entries[1::2]:
        say("failing", entry.id)
        say("failed", entry.id, repr(scheduler.failed(entry.id, "no luck", now=now)))
"""


class Said:
    """What the killed processes of one journal have acknowledged."""

    def __init__(self) -> None:
        self.made: set[int] = set()
        self.due: dict[int, float] = {}
        self.gone: set[int] = set()
        self.doubtful: set[int] = set()

    def hear(self, line: str) -> None:
        """Take note of a line."""
        word, number, *rest = line.split()
        entry = int(number)
        assert word != "early", line
        assert not (word == "fired" and entry in self.gone), f"{entry} came back"
        if word == "made":
            assert entry not in self.made, f"{entry} was used before"
            self.made.add(entry)
            # Another thread may have told of a retry before the one that made the entry spoke.
            self.due.setdefault(entry, float(rest[0]))
        elif word in ("cancelling", "ending", "failing"):
            self.doubtful.add(entry)
        elif word in ("cancelled", "done"):
            self.gone.add(entry)
        elif word == "failed":
            self.doubtful.discard(entry)
            self.due[entry] = float(rest[0])


def kill_at_random(path: Path, seed: int) -> list[str]:
    """Run a process on the journal, kill it at some moment, and return the lines it has said."""
    command = [sys.executable, "-c", CHILD, path, str(seed)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        lines = [process.stdout.readline() for _ in range(random.Random(seed).randrange(1, 400))]
        process.kill()
        return [line for line in [*lines, *process.communicate()[0].splitlines(keepends=True)] if line.endswith("\n")]


@pytest.mark.parametrize("journal", range(JOURNALS))
def test_killed_at_any_moment_it_keeps_every_promise(tmp_path: Path, journal: int) -> None:
    """What was acknowledged is there, nothing runs early, and nothing done or cancelled comes back, kill after kill."""
    path = tmp_path / "journal"
    said = Said()
    for kill in range(KILLS):
        for line in kill_at_random(path, journal * KILLS + kill):
            said.hear(line)
        found = inspect(path)
        assert found.damage is None or found.damage.torn
        pending = set(found.book.pending)
        assert said.made - said.gone - said.doubtful <= pending
        assert all(found.book.pending[entry].due == said.due[entry] for entry in said.made - said.gone - said.doubtful)
        assert not pending & said.gone
    with DelayedScheduler(path, max_attempts=10**6) as scheduler:
        now = min(entry.due for entry in found.book.pending.values()) - 1
        assert scheduler.tick(now) == []
        fired = set()
        while len(scheduler) > len(fired):
            now = max(now, scheduler.next_tick())
            for entry in scheduler.tick(now):
                assert float(entry.payload) <= entry.due <= now
                fired.add(entry.id)
        assert fired == pending
