"""Settings of the worker processes that tests start: the reference host's, with short times and handlers to try."""

import json
import os

from dilamme_project.settings import *  # noqa: F403  a variation of them
from dilamme_project.settings import DILAMME, INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "tests.app"]
DILAMME = {**DILAMME, "LEASE": 2.0, "SWEEP_INTERVAL": 0.5, **json.loads(os.environ.get("TEST_DILAMME", "{}"))}
