"""What `manage.py check` says about Dilamme: a sentence for each mistake, with the way out."""

from typing import Any

from django.conf import settings as django_settings
from django.core.checks import CheckMessage, Error, Warning, register  # noqa: A004  the framework's word
from django.db import connections

from jobs.conf import Settings, problems


@register("dilamme")
def check_settings(**_: Any) -> list[CheckMessage]:
    """Refuse unknown settings and values of the wrong type or range."""
    raw = getattr(django_settings, "DILAMME", {})
    return [Error(problem, id="dilamme.E001") for problem in problems(raw)]


@register("dilamme")
def check_database(**_: Any) -> list[CheckMessage]:
    """Refuse a database that is not PostgreSQL, or an alias that does not exist."""
    raw = getattr(django_settings, "DILAMME", {})
    alias = raw.get("DATABASE", Settings().DATABASE) if isinstance(raw, dict) else Settings().DATABASE
    if alias not in connections:
        text = f"DILAMME['DATABASE'] is {alias!r}, which is no alias in DATABASES ({', '.join(connections)})."
        return [Error(text, hint="Name one of them.", id="dilamme.E002")]
    if connections[alias].vendor != "postgresql":
        text = f"Jobs are stored in the database {alias!r}, which is {connections[alias].display_name}."
        return [Error(text, hint="Dilamme needs PostgreSQL 14 or newer.", id="dilamme.E003")]
    return []


@register("dilamme")
def check_api_keys(**_: Any) -> list[CheckMessage]:
    """Say so when the REST API cannot let anybody in."""
    raw = getattr(django_settings, "DILAMME", {})
    if isinstance(raw, dict) and raw.get("API_KEYS"):
        return []
    hint = "Set DILAMME['API_KEYS'] = {'name': 'a long random key'}, or silence dilamme.W001 if you do not use it."
    return [Warning("The REST API refuses every request: no API key is configured.", hint=hint, id="dilamme.W001")]
