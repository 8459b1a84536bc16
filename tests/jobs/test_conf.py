"""The settings: defaults, overrides, and a sentence for each mistake."""

import dataclasses
import math
from typing import Any

import pytest
from django.test import override_settings

from jobs.conf import Settings, problems
from jobs.conf import settings as in_force
from jobs.errors import ConfigurationError
from jobs.limits import ATTEMPTS_RULE, NAME_RULE, PRIORITY_RULE
from scheduling import Aging, Backoff

KEY = "a-long-and-secret-key"
SECONDS = "use a number from {} to 1,000,000,000."

WRONG = [
    ("DATABASE", 5, "is 5; it must be str."),
    ("LISTEN", 1, "is 1; it must be bool."),
    ("LISTEN_URL", None, "is None; it must be str."),
    ("POLL_INTERVAL", 0, f"is 0; {SECONDS.format('0.05')}"),
    ("POLL_INTERVAL", "5", "is '5'; it must be int or float."),
    ("POLL_INTERVAL", True, "is True; it must be int or float."),
    ("POLL_INTERVAL", math.inf, f"is inf; {SECONDS.format('0.05')}"),
    ("SPOOL", "spool", "is 'spool'; use an absolute path, or '' for no spool."),
    ("SPOOL_LIMIT", 0, f"is 0; {SECONDS.format('1')}"),
    ("LEASE", 0.5, f"is 0.5; {SECONDS.format('1')}"),
    ("LEASE", math.nan, f"is nan; {SECONDS.format('1')}"),
    ("LEASE", 10**400, f"is {10**400}; {SECONDS.format('1')}"),
    ("SWEEP_INTERVAL", -1, f"is -1; {SECONDS.format('0.1')}"),
    ("DEFAULT_QUEUE", "", f"is ''; {NAME_RULE}"),
    ("DEFAULT_QUEUE", "two words", f"is 'two words'; {NAME_RULE}"),
    ("DEFAULT_PRIORITY", 0.99, f"is 0.99; {PRIORITY_RULE}"),
    ("DEFAULT_PRIORITY", math.nan, f"is nan; {PRIORITY_RULE}"),
    ("MAX_ATTEMPTS", 0, f"is 0; {ATTEMPTS_RULE}"),
    ("MAX_ATTEMPTS", 2.5, "is 2.5; it must be int."),
    ("BACKOFF", 5, "is 5; it must be Backoff."),
    ("AGING", {}, "is {}; it must be Aging."),
    ("CONCURRENCY", 0, f"is 0; {SECONDS.format('1')}"),
    ("GRACE", -0.1, f"is -0.1; {SECONDS.format('0')}"),
    ("CLAIM_BATCH", 1001, "is 1001; use a whole number from 1 to 1000."),
    ("UNKNOWN_TYPE_DELAY", -1, f"is -1; {SECONDS.format('0')}"),
    ("ISOLATION_MAX_JOBS", 0, f"is 0; {SECONDS.format('1')[:-1]}, or None for no limit."),
    ("ISOLATION_MAX_JOBS", "many", "is 'many'; it must be int or None."),
    ("ISOLATION_MAX_MEMORY", True, "is True; it must be int or None."),
    ("MAX_PAYLOAD_BYTES", 1, f"is 1; {SECONDS.format('2')}"),
    ("MAX_RESULT_BYTES", 1, f"is 1; {SECONDS.format('2')}"),
    ("MAX_ERROR_CHARACTERS", 99, f"is 99; {SECONDS.format('100')}"),
    ("RETENTION", -1, f"is -1; {SECONDS.format('0')}"),
    ("IDEMPOTENCY_RETENTION", 0, f"is 0; {SECONDS.format('1')}"),
    ("WEBHOOK_ALLOW_PRIVATE", "no", "is 'no'; it must be bool."),
    ("LOG_DIRECTORIES", "/var/log", "is '/var/log'; it must be list or tuple."),
    ("LOG_DIRECTORIES", [5], "is [5]; use a list of paths."),
]


def test_no_settings_are_needed(settings: Any) -> None:
    """A host without DILAMME gets the defaults, and they are free of mistakes."""
    settings.DILAMME = {}  # Django says nothing of a deletion
    del settings.DILAMME
    defaults = Settings()
    assert problems(dataclasses.asdict(defaults) | {"BACKOFF": Backoff(), "AGING": Aging()}) == []
    assert {f.name: getattr(in_force, f.name) for f in dataclasses.fields(Settings)} == {
        f.name: getattr(defaults, f.name) for f in dataclasses.fields(Settings)
    }


def test_every_kind_of_setting_is_tried_below() -> None:
    """A new setting needs its own lines in the table of mistakes."""
    assert {name for name, _, _ in WRONG} | {"API_KEYS"} == {f.name for f in dataclasses.fields(Settings)}


@pytest.mark.parametrize(("name", "value", "complaint"), WRONG, ids=lambda value: str(value)[:20])
def test_a_mistake_gets_a_sentence(name: str, value: Any, complaint: str) -> None:
    """A wrong value is named together with its setting and what would be right."""
    assert problems({name: value}) == [f"DILAMME[{name!r}] {complaint}"]


def test_every_mistake_is_told_at_once() -> None:
    """Two mistakes are two sentences, so that nobody has to run the check twice."""
    assert len(problems({"LEASE": 0, "GRACE": -1})) == 2


def test_an_unknown_setting_is_refused_with_the_known_ones() -> None:
    """A misspelt name does not silently leave the default in force."""
    (problem,) = problems({"LEESE": 5})
    assert problem.startswith("DILAMME has no setting 'LEESE'. Remove it, or use one of: AGING, API_KEYS, BACKOFF,")
    assert "LEASE" in problem


@pytest.mark.parametrize("raw", [None, [("API_KEYS", {"a": KEY})], KEY])
def test_settings_that_are_no_dict_are_refused_without_showing_them(raw: Any) -> None:
    """Whatever was given instead of a dict may hold keys, so only its type is told."""
    assert problems(raw) == [f"DILAMME is of type {type(raw).__name__}; it must be a dict of settings."]


@pytest.mark.parametrize(
    "keys",
    [
        {"web": "too-short"},
        {"": KEY},
        {5: KEY},
        {"web": None},
        {"web": KEY.encode()},
        {"web": "ключ-длиннее-шестнадцати"},
        {"web": KEY + "\n"},
        {"we\x00b": KEY},
        {"web": KEY, "app": KEY},
    ],
)
def test_api_keys_that_cannot_work_are_refused_unseen(keys: dict[Any, Any]) -> None:
    """A key that is short, shared, or impossible in a header is refused, and never shown."""
    (problem,) = problems({"API_KEYS": keys})
    assert problem == (
        "DILAMME['API_KEYS'] is (hidden); use a dict of {name: key}: for each name a key of its own, of at least 16 "
        "printable ASCII characters."
    )


def test_api_keys_of_the_wrong_type_are_refused_unseen() -> None:
    """Nor is a value shown that is no dict at all."""
    assert problems({"API_KEYS": KEY}) == ["DILAMME['API_KEYS'] is (hidden); it must be Mapping."]


def test_an_override_is_in_force_at_once_and_until_its_end() -> None:
    """Settings are read when they are used."""
    before = in_force.LEASE
    with override_settings(DILAMME={"LEASE": 77.5}):
        assert (in_force.LEASE, in_force.CONCURRENCY) == (77.5, Settings().CONCURRENCY)
    assert before == in_force.LEASE != 77.5


def test_a_mistake_is_raised_by_the_first_use(settings: Any) -> None:
    """Whoever skipped the check gets the same sentences as an error."""
    settings.DILAMME = {"LEASE": 0, "GRACE": "x"}
    with pytest.raises(ConfigurationError) as caught:
        _ = in_force.CONCURRENCY
    assert str(caught.value) == " ".join(problems(settings.DILAMME))


def test_a_setting_that_does_not_exist_cannot_be_read() -> None:
    """A typing error in our own code does not read as an unset value."""
    with pytest.raises(AttributeError, match="LEESE"):
        _ = in_force.LEESE  # type: ignore[attr-defined]
