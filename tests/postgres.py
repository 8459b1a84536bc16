"""Gives the test run a PostgreSQL: loaded by `-p tests.postgres`, before pytest-django reads the settings.

Without DATABASE_URL the embedded server is started on its own data, apart from the demo's. Processes of pytest-xdist
inherit the address.
"""

import os

from dilamme_project import embedded

os.environ.setdefault("DILAMME_API_KEYS", "tests=a-key-that-only-the-tests-know")
if "DATABASE_URL" not in os.environ:
    os.environ["DATABASE_URL"] = embedded.start("test-postgres")
