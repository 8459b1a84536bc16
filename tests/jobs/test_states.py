"""The table of states: complete, and consistent with what is derived from it."""

import pytest

from jobs.states import FINAL, RETRYABLE, TRANSITIONS, Phase, Status, can_change


def test_every_status_has_a_row() -> None:
    """No status is missing from the table, so that none can be a surprise."""
    assert set(TRANSITIONS) == set(Status)


def test_every_status_can_be_reached_from_pending() -> None:
    """A job begins as pending, and every other status lies on some way from there."""
    reached, found = set(), {Status.PENDING}
    while found:
        reached |= found
        found = {target for status in found for target in TRANSITIONS[status]} - reached
    assert reached == set(Status)


def test_a_final_status_is_left_for_pending_or_not_at_all() -> None:
    """Nothing goes from one end to another: a job that ended is retried as a whole, or stays."""
    assert all(set(TRANSITIONS[status]) <= {Status.PENDING} for status in FINAL)


def test_only_final_statuses_cannot_be_claimed_or_ended() -> None:
    """What is not final can always go on to some final status."""
    assert {status for status in Status if set(TRANSITIONS[status]) & FINAL} == set(Status) - FINAL


def test_what_failed_or_was_cancelled_can_be_retried() -> None:
    """A completed job cannot be retried: it would run twice; a new job runs it again."""
    assert {Status.FAILED, Status.CANCELLED} == RETRYABLE


def test_can_change_reads_the_table() -> None:
    """The question and the table never disagree, for all pairs, as words or as members."""
    for current in Status:
        for wanted in Status:
            assert can_change(current.value, wanted.value) == (wanted in TRANSITIONS[current])


@pytest.mark.parametrize("word", ["", "paused", "PENDING"])
def test_a_word_that_is_no_status_is_refused(word: str) -> None:
    """A misspelt status is an error, not a quiet no."""
    with pytest.raises(ValueError, match=f"'{word}' is not a valid Status"):
        can_change(word, Status.PENDING)


def test_every_change_says_what_makes_it() -> None:
    """Each way in the table carries a word, for the diagram that is drawn from it."""
    assert all(word.strip() for targets in TRANSITIONS.values() for word in targets.values())


def test_the_statuses_are_the_words_of_the_api() -> None:
    """Clients depend on these five words."""
    assert Status.values == ["pending", "processing", "completed", "failed", "cancelled"]


def test_a_final_phase_has_the_name_of_its_status() -> None:
    """A final job is shown as what it is."""
    assert set(FINAL) <= set(Phase.values)
