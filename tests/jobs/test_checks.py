"""`manage.py check`: what it says about Dilamme's settings."""

from pathlib import Path
from typing import Any

import pytest
from django.core import checks
from django.core.management import CommandError, call_command
from django.db import connections

KEYS = {"API_KEYS": {"tests": "a-key-that-only-the-tests-know"}}


def found() -> list[tuple[str | None, str, str | None]]:
    """Return what the checks say, as id, text and hint."""
    return [(message.id, str(message.msg), message.hint) for message in checks.run_checks(tags=["dilamme"])]


def test_the_reference_host_passes() -> None:
    """The settings of this test run have nothing to complain about, whatever else is checked."""
    call_command("check", fail_level="WARNING")


def test_a_mistake_fails_the_check(settings: Any) -> None:
    """A wrong setting stops `check`, and so every command that runs it first."""
    settings.DILAMME = {**KEYS, "LEASE": 0}
    with pytest.raises(CommandError, match=r"dilamme\.E001.*DILAMME\['LEASE'\] is 0; use a number from 1 to"):
        call_command("check", "--tag", "dilamme")


def test_each_mistake_is_a_message_of_its_own(settings: Any) -> None:
    """Two mistakes are two errors, and are not hidden by one another."""
    settings.DILAMME = {**KEYS, "LEASE": 0, "NONE": 1}
    assert [id_ for id_, _, _ in found()] == ["dilamme.E001", "dilamme.E001"]


@pytest.mark.parametrize("alias", ["replica", 5, []], ids=str)
def test_an_alias_that_does_not_exist_is_refused(settings: Any, alias: object) -> None:
    """The message names the alias and those that exist."""
    settings.DILAMME = {**KEYS, "DATABASE": alias}
    text = f"DILAMME['DATABASE'] is {alias!r}, which is no alias in DATABASES (default)."
    assert ("dilamme.E002", text, "Name one of them.") in found()


def test_a_database_that_is_not_postgresql_is_refused(settings: Any) -> None:
    """SQLite knows no SKIP LOCKED; the check says what is needed."""
    connections.settings["lite"] = {**connections.settings["default"], "ENGINE": "django.db.backends.sqlite3"}
    settings.DILAMME = {**KEYS, "DATABASE": "lite"}
    try:
        text = "Jobs are stored in the database 'lite', which is SQLite."
        assert found() == [("dilamme.E003", text, "Dilamme needs PostgreSQL 14 or newer.")]
    finally:
        del connections["lite"]
        del connections.settings["lite"]


@pytest.mark.parametrize("given", [{}, {"API_KEYS": {}}])
def test_an_api_without_keys_is_a_warning(settings: Any, given: dict[str, object]) -> None:
    """An API that refuses everybody is safe, but hardly what was meant."""
    settings.DILAMME = given
    ((id_, text, hint),) = found()
    assert (id_, text) == ("dilamme.W001", "The REST API refuses every request: no API key is configured.")
    assert hint is not None
    assert "silence dilamme.W001 if you do not use it" in hint


def test_settings_that_are_no_dict_do_not_break_the_other_checks(settings: Any) -> None:
    """The check explains the mistake; it does not end in a traceback of its own."""
    settings.DILAMME = ["LEASE"]
    assert sorted(id_ for id_, _, _ in found()) == ["dilamme.E001", "dilamme.W001"]


def test_a_spool_that_could_not_be_written_is_refused(settings: Any, tmp_path: Path) -> None:
    """It is found before the outage; a directory that has yet to be made is fine."""
    (tmp_path / "file").write_text("")
    for directory, ids in ((tmp_path, []), (tmp_path / "a" / "b", []), (tmp_path / "file", ["dilamme.E004"])):
        settings.DILAMME = {**KEYS, "SPOOL": str(directory)}
        assert [id_ for id_, _, _ in found()] == ids
    settings.DILAMME = {**KEYS, "SPOOL": "relative"}
    assert [id_ for id_, _, _ in found()] == ["dilamme.E001"]
