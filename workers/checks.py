"""What `manage.py check` says about the worker's command, whose name Channels uses as well."""

from typing import Any

from django.core.checks import CheckMessage, Warning, register  # noqa: A004  the framework's word
from django.core.management import get_commands


@register("dilamme")
def check_runworker(**_: Any) -> list[CheckMessage]:
    """Say so when `manage.py runworker` would start something else."""
    owner = get_commands().get("runworker")
    if owner == "workers":
        return []
    text = f"`manage.py runworker` starts the command of {owner!r}, not Dilamme's worker."
    hint = f"Put 'workers' before {owner!r} in INSTALLED_APPS; Channels' own use of the command keeps working."
    return [Warning(text, hint=hint, id="dilamme_workers.W001")]
