"""What `manage.py check` says about Dilamme: a sentence for each mistake, with the way out."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.core.checks import CheckMessage, Error, Warning, register  # noqa: A004  the framework's word
from django.db import connections

from jobs.conf import Settings, given, problems


@register("dilamme")
def check_settings(**_: Any) -> list[CheckMessage]:
    """Refuse unknown settings and values of the wrong type or range."""
    return [Error(problem, id="dilamme.E001") for problem in problems(given())]


@register("dilamme")
def check_database(**_: Any) -> list[CheckMessage]:
    """Refuse a database that is not PostgreSQL, or an alias that does not exist."""
    alias = _readable().get("DATABASE", Settings().DATABASE)
    if alias not in connections:
        text = f"DILAMME['DATABASE'] is {alias!r}, which is no alias in DATABASES ({', '.join(connections)})."
        return [Error(text, hint="Name one of them.", id="dilamme.E002")]
    if connections[alias].vendor != "postgresql":
        text = f"Jobs are stored in the database {alias!r}, which is {connections[alias].display_name}."
        return [Error(text, hint="Dilamme needs PostgreSQL 14 or newer.", id="dilamme.E003")]
    return []


@register("dilamme")
def check_spool(**_: Any) -> list[CheckMessage]:
    """Refuse a spool that could not be written when it is needed."""
    directory = _readable().get("SPOOL", "")
    if not directory or problems({"SPOOL": directory}):
        return []
    there = Path(directory)
    while not there.exists():
        there = there.parent
    if there.is_dir() and os.access(there, os.W_OK | os.X_OK):
        return []
    text = f"DILAMME['SPOOL'] is {directory!r}: {there} is no directory that this user may write to."
    return [Error(text, hint="Make the directory for the user of your processes, or name another.", id="dilamme.E004")]


@register("dilamme")
def check_api_keys(**_: Any) -> list[CheckMessage]:
    """Say so when the REST API cannot let anybody in."""
    if _readable().get("API_KEYS"):
        return []
    hint = "Set DILAMME['API_KEYS'] = {'name': 'a long random key'}, or silence dilamme.W001 if you do not use it."
    return [Warning("The REST API refuses every request: no API key is configured.", hint=hint, id="dilamme.W001")]


def _readable() -> Mapping[str, Any]:
    """Return the settings as given; none if `check_settings` has to complain that they are no dict."""
    raw = given()
    return raw if isinstance(raw, Mapping) else {}
