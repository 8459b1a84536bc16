"""Keeps on this machine's disk what the database cannot be told now, and tells it later.

`files` a queue of records in a journal, adopted after a crash · `records` how jobs and outcomes are written down ·
`forwarder` takes spooled jobs to the database. Outcomes are reported by the workers, which own the fence.
"""
