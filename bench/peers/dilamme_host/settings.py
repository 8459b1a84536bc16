"""The reference host with its defaults, and the one handler to measure with."""

from dilamme_project.settings import *  # noqa: F403  a variation of them
from dilamme_project.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "bench.peers.dilamme_host"]
