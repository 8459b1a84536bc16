"""Whether a worker asks the database for jobs, and for how many."""

from jobs.conf import settings
from jobs.lifecycle import Claimed
from jobs.lifecycle.frontier import Level

_OLD = 1.0  # seconds a job has waited for its claim, in a queue and priority where it is one of many
_LOOK_AGAIN_AFTER = 0.0025  # seconds for each job of the next claim, after one that met other workers' locks only


class Hunger:
    """Used by a worker's loop only; several claims may be under way."""

    def __init__(self) -> None:
        self.is_felt = True  # whether there may be due jobs that nobody has claimed or asked for
        self._presumes_more = False  # whether the latest claim that was answered has left some
        self._reach = 1  # jobs to ask for at least; more than are needed only to get past rows that others have locked
        self.backlog: frozenset[Level] = frozenset()  # where more are left, and the latest had waited for long

    def feel(self) -> None:
        """Have the next claim sent: there may be something."""
        self.is_felt = True

    def portion(self, free: int) -> int:
        """Return how many jobs to ask for, with so many places for them."""
        return min(max(free, self._reach), settings.CLAIM_BATCH) if free > 0 else 0

    def note_asked(self) -> None:
        """Take in that a claim is under way: its answer says whether there is more, unless that can be presumed."""
        self.is_felt = self._presumes_more

    def note_answer(self, claimed: Claimed) -> float | None:
        """Decide whether to claim again: at once while there is more, or in so many seconds when all was locked."""
        self._reach = 1
        self._presumes_more = claimed.may_have_left_some and bool(claimed.claims)
        self.is_felt |= self._presumes_more
        self.backlog = _old_levels(claimed) if self._presumes_more else frozenset()
        if not claimed.may_have_left_some or claimed.claims:
            return None
        self._reach = min(2 * max(claimed.room, 1), settings.CLAIM_BATCH)  # look past a lock that stays
        return _LOOK_AGAIN_AFTER * self._reach  # and ever less often


def _old_levels(claimed: Claimed) -> frozenset[Level]:
    return frozenset(
        (claim.queue, claim.priority) for claim in claimed.claims if claim.claimed_at - claim.run_at > _OLD
    )
