"""What the demo prints: a line when a job moves, a bar on a terminal, and a table at the end."""

import sys
import time
import uuid
from typing import TextIO

from dilamme_project.demo.play import Play
from jobs.models import Job
from jobs.states import FINAL

_BAR = 24  # characters


class Display:
    """Shows how the jobs of a play move."""

    def __init__(self, out: TextIO = sys.stdout) -> None:
        self._out = out
        self._is_terminal = out.isatty()
        self._begun = time.monotonic()
        self._seen: dict[uuid.UUID, tuple[str, int]] = {}

    def show(self, play: Play, jobs: dict[uuid.UUID, Job]) -> None:
        """Print what has changed since the last call, and the bar below it."""
        if self._is_terminal:
            self._out.write("\r\x1b[K")
        for act in play.acts:
            job = jobs.get(act.job_id)
            if job is not None and self._seen.get(job.pk) != (now := (job.phase(), job.attempt)):
                self._seen[job.pk] = now
                elapsed = time.monotonic() - self._begun
                self._out.write(f"  {elapsed:5.1f} s  {act.title:<34} {job.phase().label.lower()}\n")
        if self._is_terminal:
            ended = sum(job.status in FINAL for job in jobs.values())
            filled = _BAR * ended // max(1, len(jobs))
            self._out.write(f"  [{'#' * filled}{'.' * (_BAR - filled)}] {ended} of {len(jobs)} ended")
        self._out.flush()

    def table(self, play: Play, jobs: dict[uuid.UUID, Job]) -> None:
        """Print what happened to each job."""
        if self._is_terminal:
            self._out.write("\r\x1b[K")
        self._out.write(f"\n  {'Job':<34} {'Id':<36}  {'Status':<10} {'Attempts':>8}  {'Duration':>9}\n")
        for act in play.acts:
            job = jobs[act.job_id]
            took = f"{job.duration.total_seconds() * 1000:,.0f} ms" if job.duration else ""
            self._out.write(f"  {act.title:<34} {job.pk}  {job.status:<10} {job.attempts_used:>8}  {took:>9}\n")
        self._out.write("\n")
        self._out.flush()
