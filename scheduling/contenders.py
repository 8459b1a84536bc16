"""Owns what `scheduling.comparison` compares: the jobs, four structures that hold them, and what each must hand out.

It never measures anything. The heap and the wheel are the real ones; beside each stands its floor, the least that
Python needs for something like its work: `heapq` on bare tuples, and a dict of lists by tick. A floor does less than
what it is compared with: the one knows no aging and cannot tell where an id lies, the other must be told the due time
of what it cancels, and no time of its own passes in it.
"""

import heapq
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final, Protocol, TypeAlias

from scheduling.aging import Aging
from scheduling.checking import check_order, check_times
from scheduling.heap import ReadyHeap
from scheduling.wheel import TimingWheel

TICK: Final = 0.001
"""Seconds of a tick of the wheel and of its floor, and from one re-scoring to the next."""

_FIRST_DUE: Final = 20.0
_LAST_DUE: Final = 560.0

# When the heap is asked, each job has waited 610 to 1,150 s: Medium has become High and Low Medium, and for the next
# fifty seconds nothing changes.
_AGING: Final = Aging(step=600.0)
_ASKED_AT: Final = _LAST_DUE + 610.0


_Fired: TypeAlias = tuple[float, int]
"""(time or tick, id): nothing that the garbage collector would have to walk over while a structure is drained."""


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """What is put in: as much of a job as decides about its order. It equals itself alone, so that lists find it."""

    id: int
    priority: float
    run_at: float
    created_at: float


@dataclass(frozen=True, slots=True)
class Workload:
    """The jobs in the order in which they are put in, and in that in which they are cancelled."""

    jobs: Sequence[Job]
    shuffled: Sequence[Job]

    @classmethod
    def of(cls, n: int, seed: int) -> "Workload":
        """Make `n` jobs of three priorities, due at random microseconds within nine minutes; the same for each seed."""
        rng = random.Random(seed)  # noqa: S311  nothing is secret here
        jobs = [
            Job(
                id=number,
                priority=float(rng.randint(1, 3)),
                run_at=round(rng.uniform(_FIRST_DUE, _LAST_DUE), 6),
                created_at=number * 1e-6,
            )
            for number in range(n)
        ]
        return cls(jobs, rng.sample(jobs, n))


class Contender(Protocol):
    """A structure that can be filled, emptied in order, and cancelled in any order."""

    who: str
    """Its name in a sentence."""
    clock: float
    """The time at which it is filled, in seconds."""

    def fill(self, jobs: Sequence[Job]) -> None:
        """Insert all jobs."""

    def drain(self) -> Sequence[Any]:
        """Take everything out in order."""

    def flush(self) -> Sequence[Any]:
        """Take everything out at once, in order."""

    def cancel(self, jobs: Sequence[Job]) -> None:
        """Remove these jobs one by one."""

    def tick(self, times: Sequence[float]) -> Sequence[Any]:
        """Move on to one time after the other and return what happened at each; nothing is false."""

    def __len__(self) -> int:
        """Return how many jobs are in it."""

    def check(self, drained: Sequence[Any], jobs: Sequence[Job]) -> None:
        """Raise WrongResult unless that is what `drain` must return of these jobs."""

    def check_flushed(self, flushed: Sequence[Any], jobs: Sequence[Job]) -> None:
        """Raise WrongResult unless that is what `flush` must return of these jobs."""


class _Heap:
    """`ReadyHeap`, popped one by one."""

    who = "the heap"
    clock = _ASKED_AT

    def __init__(self) -> None:
        self._heap: ReadyHeap[Job] = ReadyHeap(_AGING)

    def fill(self, jobs: Sequence[Job]) -> None:
        push, now = self._heap.push, self.clock
        for job in jobs:
            push(job, now)

    def drain(self) -> list[Job]:
        pop = self._heap.pop
        return [pop() for _ in range(len(self._heap))]

    def flush(self) -> list[Job]:
        return self._heap.drain()

    def cancel(self, jobs: Sequence[Job]) -> None:
        discard = self._heap.discard
        for job in jobs:
            discard(job.id)

    def tick(self, times: Sequence[float]) -> list[bool]:
        rescore = self._heap.rescore
        return [rescore(time) for time in times]

    def __len__(self) -> int:
        return len(self._heap)

    def check(self, drained: Sequence[Job], jobs: Sequence[Job]) -> None:
        def urgency(job: Job) -> tuple[float, float, float, int]:
            return _AGING.effective(job.priority, self.clock - job.run_at), job.run_at, job.created_at, job.id

        check_order(self.who, [job.id for job in drained], [job.id for job in sorted(jobs, key=urgency)])

    check_flushed = check


class _HeapqFloor:
    """`heapq` on (priority, run_at, created_at, id). What is cancelled goes into a set, filtered out at the end."""

    who = "the heapq floor"
    clock = _ASKED_AT

    def __init__(self) -> None:
        self._heap: list[tuple[float, float, float, int]] = []

    def fill(self, jobs: Sequence[Job]) -> None:
        heap, push = self._heap, heapq.heappush
        for job in jobs:
            push(heap, (job.priority, job.run_at, job.created_at, job.id))

    def drain(self) -> list[int]:
        heap, pop = self._heap, heapq.heappop
        return [pop(heap)[3] for _ in range(len(heap))]

    def flush(self) -> list[int]:
        flushed = [entry[3] for entry in sorted(self._heap)]
        self._heap.clear()
        return flushed

    def cancel(self, jobs: Sequence[Job]) -> None:
        cancelled: set[int] = set()
        for job in jobs:
            cancelled.add(job.id)
        self._heap = [entry for entry in self._heap if entry[3] not in cancelled]
        heapq.heapify(self._heap)

    def tick(self, times: Sequence[float]) -> list[bool]:
        # It has nothing to re-score: a look at the first entry is all there is to do.
        heap, first = self._heap, self._heap[0]
        return [heap[0] is not first for _ in times]

    def __len__(self) -> int:
        return len(self._heap)

    def check(self, drained: Sequence[int], jobs: Sequence[Job]) -> None:
        ordered = sorted(jobs, key=lambda job: (job.priority, job.run_at, job.created_at, job.id))
        check_order(self.who, drained, [job.id for job in ordered])

    check_flushed = check


class _Wheel:
    """`TimingWheel`, advanced from expiry to expiry, as a worker does that sleeps in between, or to the end at once."""

    who = "the wheel"
    clock = 0.0

    def __init__(self) -> None:
        self._wheel: TimingWheel[int, Job] = TimingWheel(start=self.clock, tick=TICK)

    def fill(self, jobs: Sequence[Job]) -> None:
        insert = self._wheel.insert
        for job in jobs:
            insert(job.id, job.run_at, job)

    def drain(self) -> list[_Fired]:
        next_expiry, advance = self._wheel.next_expiry, self._wheel.advance
        fired: list[_Fired] = []
        while (now := next_expiry()) is not None:
            fired += [(now, id_) for id_, _ in advance(now)]
        return fired

    def flush(self) -> list[tuple[int, Job]]:
        return self._wheel.advance(_LAST_DUE + TICK)

    def cancel(self, jobs: Sequence[Job]) -> None:
        cancel = self._wheel.cancel
        for job in jobs:
            cancel(job.id)

    def tick(self, times: Sequence[float]) -> list[list[tuple[int, Job]]]:
        advance = self._wheel.advance
        return [advance(time) for time in times]

    def __len__(self) -> int:
        return len(self._wheel)

    def check(self, drained: Sequence[_Fired], jobs: Sequence[Job]) -> None:
        check_times(self.who, drained, _due(jobs), TICK)

    def check_flushed(self, flushed: Sequence[tuple[int, Job]], jobs: Sequence[Job]) -> None:
        # No times are told; what comes in the order of its ticks is less than one behind the latest before it.
        latest = accumulate((job.run_at for _, job in flushed), max)
        check_times(self.who, zip(latest, (id_ for id_, _ in flushed), strict=True), _due(jobs), TICK)


class _DictFloor:
    """A dict of lists by tick. Who cancels must know the tick, and searches its list."""

    who = "the dict floor"
    clock = 0.0

    def __init__(self) -> None:
        self._slots: dict[int, list[Job]] = {}

    def fill(self, jobs: Sequence[Job]) -> None:
        slots, ceil = self._slots, math.ceil
        for job in jobs:
            slots.setdefault(ceil(job.run_at / TICK), []).append(job)

    def drain(self) -> list[_Fired]:
        slots = self._slots
        return [(tick, job.id) for tick in sorted(slots) for job in slots.pop(tick)]

    flush = drain

    def cancel(self, jobs: Sequence[Job]) -> None:
        slots, ceil = self._slots, math.ceil
        for job in jobs:
            tick = ceil(job.run_at / TICK)
            slots[tick].remove(job)
            if not slots[tick]:
                del slots[tick]

    def tick(self, times: Sequence[float]) -> list[Sequence[Job]]:
        slots, floor = self._slots, math.floor
        return [slots.pop(floor(time / TICK), ()) for time in times]

    def __len__(self) -> int:
        return sum(map(len, self._slots.values()))

    def check(self, drained: Sequence[_Fired], jobs: Sequence[Job]) -> None:
        check_times(self.who, [(tick * TICK, id_) for tick, id_ in drained], _due(jobs), TICK)

    check_flushed = check


CONTENDERS: Final[Mapping[str, Callable[[], Contender]]] = {
    "heap": _Heap,
    "wheel": _Wheel,
    "heapq": _HeapqFloor,
    "dict": _DictFloor,
}


def _due(jobs: Sequence[Job]) -> dict[int, float]:
    return {job.id: job.run_at for job in jobs}
