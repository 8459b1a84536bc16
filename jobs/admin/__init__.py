"""Dilamme in Django's admin: lists, details and the buttons of operators. Django's autodiscovery finds it here.

It parses, calls and presents. What may be done to a job is decided in `jobs.lifecycle` and `jobs.states`; nothing is
added, edited or deleted through these pages.
"""

from jobs.admin.dead_letters import DeadLetterAdmin
from jobs.admin.jobs import JobAdmin
from jobs.admin.workers import WorkerAdmin

__all__ = ["DeadLetterAdmin", "JobAdmin", "WorkerAdmin"]
