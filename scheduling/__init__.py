"""Owns order, time, delay, recurrence and the journal in pure Python: no Django, no database, no clock of its own."""

from scheduling.aging import FAST, SLOW, Aging
from scheduling.backoff import Backoff
from scheduling.crons import Cron
from scheduling.delayed import DelayedScheduler
from scheduling.entries import DeadEntry, Entry
from scheduling.heap import ReadyHeap
from scheduling.intervals import Grid, Interval
from scheduling.journal import (
    Journal,
    JournalClosed,
    JournalCorrupt,
    JournalError,
    JournalLocked,
    JournalPoisoned,
    JournalWriteFailed,
    RecordTooLarge,
)
from scheduling.recurrence import CatchUp, Due, Rule, due, upcoming
from scheduling.wheel import TimingWheel
from scheduling.zones import InvalidRule

__all__ = [
    "FAST",
    "SLOW",
    "Aging",
    "Backoff",
    "CatchUp",
    "Cron",
    "DeadEntry",
    "DelayedScheduler",
    "Due",
    "Entry",
    "Grid",
    "Interval",
    "InvalidRule",
    "Journal",
    "JournalClosed",
    "JournalCorrupt",
    "JournalError",
    "JournalLocked",
    "JournalPoisoned",
    "JournalWriteFailed",
    "ReadyHeap",
    "RecordTooLarge",
    "Rule",
    "TimingWheel",
    "due",
    "upcoming",
]
