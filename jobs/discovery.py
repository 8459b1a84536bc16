"""Finds handlers: imports the `jobs` and `tasks` modules of the installed apps, whose `@job`s then register themselves.

It keeps nothing; what was found is in `jobs.registry`.
"""

import importlib

from django.apps import apps
from django.utils.module_loading import module_has_submodule

from jobs.errors import ConfigurationError

_MODULES = ("jobs", "tasks")


def autodiscover() -> None:
    """Import the `jobs` and `tasks` modules of every installed app, so that their handlers are registered."""
    for app in apps.get_app_configs():
        for module in _MODULES:
            if app.name != "jobs" and module_has_submodule(app.module, module):
                _load(f"{app.name}.{module}")


def _load(module: str) -> None:
    try:
        importlib.import_module(module)
    except (Exception, SystemExit) as error:
        raise ConfigurationError(
            f"The module {module}, searched for job handlers, could not be imported: {type(error).__name__}: {error}"
        ) from error
