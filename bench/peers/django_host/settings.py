"""Settings of that project. `BENCH_BACKEND` names the backend; each is configured as its own documentation advises."""

import os

from psycopg import conninfo

_PROCESSES = int(os.environ.get("BENCH_PROCESSES", "1"))

_BACKENDS = {
    "django_ox": {"BACKEND": "django_ox.backend.OxBackend"},
    "django_tasks_db": {"BACKEND": "django_tasks_db.DatabaseBackend"},
    "dj_queue": {
        "BACKEND": "dj_queue.backend.DjQueueBackend",
        "OPTIONS": {
            "workers": [
                {
                    "queues": "*",
                    "processes": _PROCESSES,
                    "threads": 8,  # as in its own benchmark
                    "prefetch_multiplier": 8,  # claims 64 jobs at once: many, because they are short
                },
            ],
            "dispatchers": [{"polling_interval": 0.1}],
        },
    },
}
_NAME = os.environ["BENCH_BACKEND"]
_DATABASE = conninfo.conninfo_to_dict(os.environ["DATABASE_URL"])

SECRET_KEY = "only here"  # nothing is signed
INSTALLED_APPS = [_NAME, "bench.peers.django_host"]
USE_TZ = True
LOGGING_CONFIG = None  # two lines for each task otherwise
TASKS = {"default": _BACKENDS[_NAME]}
DATABASE_ROUTERS = ["dj_queue.routers.DjQueueRouter"] if _NAME == "dj_queue" else []
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": _DATABASE["dbname"],
        "USER": _DATABASE.get("user", ""),
        "PASSWORD": _DATABASE.get("password", ""),
        "HOST": _DATABASE.get("host", ""),
        "PORT": _DATABASE.get("port", ""),
        "CONN_MAX_AGE": 600,  # persistent: a pool was slower
    }
}
