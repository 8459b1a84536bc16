"""The handler."""

from django.tasks import task

from bench.peers import ledger


@task
def record(number: int) -> None:
    """Note that job `number` ran."""
    ledger.record(number)
