"""`manage.py dilamme`: what an operator asks at a shell. A face: it parses, calls and prints."""

import uuid
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from jobs.errors import DilammeError
from jobs.explaining import explain


class Command(BaseCommand):
    """Parse, ask, print."""

    help = "Ask about jobs: `dilamme explain ID` says why a job is not running."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare what can be asked."""
        questions = parser.add_subparsers(dest="question", required=True, metavar="QUESTION")
        explaining = questions.add_parser("explain", help="why a job is not running")
        explaining.add_argument("job", metavar="ID", help="the id of a job")

    def handle(self, *_: Any, **options: Any) -> None:
        """Print every reason, the one that decides first."""
        try:
            job_id = uuid.UUID(options["job"])
        except ValueError:
            raise CommandError(f"{options['job']!r} is no id of a job, which are UUIDs.") from None
        try:
            found = explain(job_id)
        except DilammeError as error:
            raise CommandError(str(error)) from None
        self.stdout.write(f"{found.job_id} is {found.status}.")
        for reason in found.reasons:
            self.stdout.write(f"- {reason.text}")
