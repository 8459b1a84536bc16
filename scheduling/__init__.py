"""Owns order, time, delay and the journal in pure Python: no Django, no database and no clock of its own."""

from scheduling.aging import FAST, SLOW, Aging
from scheduling.backoff import Backoff
from scheduling.delayed import DelayedScheduler
from scheduling.entries import DeadEntry, Entry
from scheduling.heap import ReadyHeap
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
from scheduling.wheel import TimingWheel

__all__ = [
    "FAST",
    "SLOW",
    "Aging",
    "Backoff",
    "DeadEntry",
    "DelayedScheduler",
    "Entry",
    "Journal",
    "JournalClosed",
    "JournalCorrupt",
    "JournalError",
    "JournalLocked",
    "JournalPoisoned",
    "JournalWriteFailed",
    "ReadyHeap",
    "RecordTooLarge",
    "TimingWheel",
]
