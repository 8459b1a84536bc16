"""Owns what it means that jobs came out right: each once, in order, never early. It raises, and never mends."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence


class WrongResult(Exception):
    """A structure did not hand out what it must; its times mean nothing."""


def check_order(who: str, ids: Sequence[int], expected: Sequence[int]) -> None:
    """Raise WrongResult unless the ids are the expected ones, in their order."""
    if len(ids) != len(expected):
        raise WrongResult(f"{who} handed out {len(ids):,} jobs of {len(expected):,}.")
    for place, (id_, right) in enumerate(zip(ids, expected, strict=True)):
        if id_ != right:
            raise WrongResult(f"{who} handed out job {id_} in place {place}, which belongs to job {right}.")


def check_times(who: str, fired: Iterable[tuple[float, int]], due: Mapping[int, float], tick: float) -> None:
    """Raise WrongResult unless each job fired once, in order, never early, and less than a tick late.

    fired: when and which, in the order it happened. due: when each should have. All times and `tick` are seconds.
    """
    seen: Counter[int] = Counter()
    before = -math.inf
    for now, id_ in fired:
        if id_ not in due:
            raise WrongResult(f"{who} fired job {id_}, which was not put in.")
        late = now - due[id_]
        # What floats cannot tell apart counts neither as early nor as late.
        if not -1e-9 < late < tick + 1e-9:
            raise WrongResult(f"{who} fired job {id_}, due at {due[id_]} s, at {now} s.")
        if now < before:
            raise WrongResult(f"{who} fired job {id_} at {now} s, after others at {before} s.")
        before = now
        seen[id_] += 1
    if wrong := [id_ for id_ in due if seen[id_] != 1]:
        raise WrongResult(f"{who} fired job {wrong[0]} {seen[wrong[0]]} times.")
