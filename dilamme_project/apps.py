"""The reference host as an app, for its `demo` command."""

from django.apps import AppConfig


class ProjectConfig(AppConfig):
    """Label of the reference host."""

    name = "dilamme_project"
    label = "dilamme_project"
    verbose_name = "Dilamme reference host"
