"""Dilamme in Django's admin: lists, details and the buttons of operators. Django's autodiscovery finds it here.

It parses, calls and presents. What may be done to a job is decided in `jobs.lifecycle` and `jobs.states`, what may be
said of a series or a queue in `jobs.series` and `jobs.queues`; Django's forms save nothing by themselves.
"""

from jobs.admin.dead_letters import DeadLetterAdmin
from jobs.admin.jobs import JobAdmin
from jobs.admin.queues import PausedTypeAdmin, QueueAdmin
from jobs.admin.series import SeriesAdmin
from jobs.admin.workers import WorkerAdmin

__all__ = ["DeadLetterAdmin", "JobAdmin", "PausedTypeAdmin", "QueueAdmin", "SeriesAdmin", "WorkerAdmin"]
