"""Settings of a benchmark: the reference host's defaults, and the handlers to measure with."""

from dilamme_project.settings import *  # noqa: F403  a variation of them
from dilamme_project.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "bench"]
