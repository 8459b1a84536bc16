"""Settings under which the demo cannot succeed."""

import os
import sys

from dilamme_project.settings import *  # noqa: F403  a variation of them
from dilamme_project.settings import DILAMME

DILAMME = {**DILAMME, "LOG_DIRECTORIES": [], "MAX_ATTEMPTS": 1}

if os.environ.get("BREAK_THE_WORKER") and "runworker" in sys.argv:
    raise RuntimeError("This worker is not to start.")
