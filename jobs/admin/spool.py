"""What operators are told about the spool of the web process that serves them: nothing while it has nothing."""

from jobs.spool.forwarder import SpoolStatus


def notices(spool: SpoolStatus) -> list[str]:
    """Return a sentence for each thing that somebody should know."""
    found = []
    if spool.jobs:
        found.append(
            f"{spool.jobs:,} jobs accepted during an outage wait in this process's spool ({spool.size:,} of "
            f"{spool.limit:,} bytes) and are not in the list yet."
        )
    if spool.last_error:
        found.append(f"The spool cannot be forwarded: {spool.last_error}")
    if spool.refused:
        found.append(
            f"{spool.refused:,} spooled jobs were refused by the database. They are kept in refused.jsonl in the "
            f"directory DILAMME['SPOOL'], each with the reason."
        )
    return found
