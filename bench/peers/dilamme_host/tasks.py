"""The handler."""

from bench.peers import ledger
from jobs import job


@job(name="bench.record")
def record(number: int) -> None:
    """Note that job `number` ran."""
    ledger.record(number)
