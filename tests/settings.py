"""Settings of the worker processes that tests start: the reference host's, with short times and handlers to try."""

import json
import os
import time

from dilamme_project.settings import *  # noqa: F403  a variation of them
from dilamme_project.settings import DILAMME, INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "tests.app"]
DILAMME = {**DILAMME, "LEASE": 2.0, "SWEEP_INTERVAL": 0.5, **json.loads(os.environ.get("TEST_DILAMME", "{}"))}

# A host whose wall clock is wrong: everything in the process that asks for the time gets this.
if off_by := float(os.environ.get("TEST_CLOCK_IS_OFF_BY", "0")):
    right_time = time.time
    time.time = lambda: right_time() + off_by
    time.time_ns = lambda: int(time.time() * 1_000_000_000)

# Channels' worker tells what it does at this level only.
if os.environ.get("CHANNELS_LOG"):
    LOGGING = {
        "version": 1,
        "disable_existing_loggers": False,
        "handlers": {"stderr": {"class": "logging.StreamHandler"}},
        "loggers": {"django.channels": {"handlers": ["stderr"], "level": "INFO"}},
    }
