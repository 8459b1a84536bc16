#!/usr/bin/env python
"""The reference host's command line. Without `DATABASE_URL` it starts the embedded PostgreSQL under `.dilamme/`."""

import os
import sys


def main() -> None:
    """Run a management command."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dilamme_project.settings")
    from dilamme_project import embedded  # after the settings module is named

    embedded.provide_database()
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
