"""The Django app `dilamme_workers`: the processes that run jobs, and the built-in handlers."""

from django.apps import AppConfig


class WorkersConfig(AppConfig):
    """Label and name; the models are those of `jobs`."""

    name = "workers"
    label = "dilamme_workers"
    verbose_name = "Dilamme workers"

    def ready(self) -> None:
        """Register the check of the command's name."""
        from workers import checks  # noqa: F401, PLC0415  registers the check; needs the app registry
