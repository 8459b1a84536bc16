"""The only writer of a job's status.

Read it in this order:

`exchange` what a worker does each turn · `recording` how a run that ended is written, behind the fence · `cascade` what
that means for those that wait · `claiming` how jobs are taken · `frontier` from where on · `controls` what is held
back · `rescue` how jobs are taken back from a lost worker · `expiry` how those end that were not started in time ·
`retention` how history ends · `operating` what people may do · `retrying` how final jobs come back · `editing` what may
still be changed · `reporting` what handlers say · `presence` how a worker says that it is alive.
"""

from jobs.lifecycle.cascade import settle_rest
from jobs.lifecycle.claiming import Appetite, Claimed, held, upcoming
from jobs.lifecycle.editing import edit
from jobs.lifecycle.exchange import Exchange, Exchanged, exchange
from jobs.lifecycle.expiry import expire
from jobs.lifecycle.operating import Answer, cancel, cancel_workflow, retry, retry_workflow
from jobs.lifecycle.presence import Presence, beat, leave, saturate
from jobs.lifecycle.rescue import rescue
from jobs.lifecycle.retention import Retention

__all__ = [
    "Answer",
    "Appetite",
    "Claimed",
    "Exchange",
    "Exchanged",
    "Presence",
    "Retention",
    "beat",
    "cancel",
    "cancel_workflow",
    "edit",
    "exchange",
    "expire",
    "held",
    "leave",
    "rescue",
    "retry",
    "retry_workflow",
    "saturate",
    "settle_rest",
    "upcoming",
]
