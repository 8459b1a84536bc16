"""The Django app `dilamme`: everything about jobs but running them."""

from django.apps import AppConfig


class JobsConfig(AppConfig):
    """Label, name in the admin, and what happens once Django is ready."""

    name = "jobs"
    label = "dilamme"
    verbose_name = "Dilamme"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Find the handlers and register the checks. Imports wait until the app registry is complete."""
        from jobs import checks  # noqa: F401, PLC0415  registers the checks; needs the models
        from jobs.discovery import autodiscover  # noqa: PLC0415  needs the app registry
        from jobs.live import publishing  # noqa: PLC0415  needs the models

        publishing.connect()
        autodiscover()
