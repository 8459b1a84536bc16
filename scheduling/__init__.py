"""Owns order, time and delay in pure Python: no Django, no database and no clock of its own."""

from scheduling.aging import FAST, SLOW, Aging
from scheduling.backoff import Backoff
from scheduling.heap import ReadyHeap
from scheduling.wheel import TimingWheel

__all__ = ["FAST", "SLOW", "Aging", "Backoff", "ReadyHeap", "TimingWheel"]
