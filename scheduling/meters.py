"""Owns what the delayed scheduler counts, and never decides anything by it. Every count is O(1)."""

from collections.abc import Iterable
from dataclasses import dataclass

from scheduling.journal import JournalMetrics
from scheduling.ledger import Ledger


@dataclass(frozen=True, slots=True)
class DelayedMetrics:
    """What a scheduler holds, and what has happened since it was opened. Durations are seconds.

    pending: entries that wait or are in flight. in_flight, dead: how many of each. recovered: records read on opening.
    ticks: calls that moved time on. drift_sum, drift_max: by how much they came after the moment that the scheduler
    had asked for. dispatched: entries handed out. latency_sum, latency_max: from their due times until then.
    snapshot_failures: snapshots that the disk refused. journal: the metrics of the journal.
    """

    pending: int
    in_flight: int
    dead: int
    recovered: int
    ticks: int
    drift_sum: float
    drift_max: float
    dispatched: int
    latency_sum: float
    latency_max: float
    snapshot_failures: int
    journal: JournalMetrics


class Meters:
    """The running counts; the scheduler serialises access. `asked` is when it wants the next tick, or None."""

    def __init__(self) -> None:
        self.asked: float | None = None
        self._ticks = 0
        self._dispatched = 0
        self._drift_sum = self._drift_max = 0.0
        self._latency_sum = self._latency_max = 0.0

    def ticked(self, now: float) -> None:
        """Count a tick, and by how much it was late."""
        self._ticks += 1
        if self.asked is not None:
            drift = max(0.0, now - self.asked)
            self._drift_sum += drift
            self._drift_max = max(self._drift_max, drift)

    def dispatched(self, latencies: Iterable[float]) -> None:
        """Count entries that were handed out, each this long after it was due."""
        for latency in latencies:
            self._dispatched += 1
            self._latency_sum += latency
            self._latency_max = max(self._latency_max, latency)

    def read(self, ledger: Ledger) -> DelayedMetrics:
        """Return the counts as they are."""
        return DelayedMetrics(
            pending=len(ledger.book.pending),
            in_flight=len(ledger.book.started),
            dead=len(ledger.book.dead),
            recovered=ledger.recovered,
            ticks=self._ticks,
            drift_sum=self._drift_sum,
            drift_max=self._drift_max,
            dispatched=self._dispatched,
            latency_sum=self._latency_sum,
            latency_max=self._latency_max,
            snapshot_failures=ledger.snapshot_failures,
            journal=ledger.metrics(),
        )
