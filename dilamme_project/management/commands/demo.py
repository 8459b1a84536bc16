"""`manage.py demo`: everything Dilamme does on its main path, on this machine, with real parts."""

import secrets
import signal
import sys
from argparse import ArgumentParser
from typing import Any

import httpx
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from dilamme_project.demo.display import Display
from dilamme_project.demo.play import Play
from dilamme_project.demo.processes import DemoProcesses
from dilamme_project.demo.receivers import MailReceiver, WebhookReceiver, free_port
from jobs.errors import DilammeError

OPERATOR = "operator"


class Command(BaseCommand):
    """Set up, put real work in, show it moving, say what happened."""

    requires_system_checks = []  # it configures what it starts; nobody needs to hear about keys that are still missing
    help = "Show Dilamme at work: migrates, starts the admin, the API and a worker, and runs real jobs."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("--once", action="store_true", help="End after the jobs: 0 if all went well, 1 if not.")
        parser.add_argument("--port", type=int, default=8000, help="Of the admin and the API; another one if taken.")

    def handle(self, *, once: bool, port: int, **_: Any) -> None:
        """Run the demo; whatever was started is ended on the way out."""
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, _as_interrupt)
        call_command("migrate", verbosity=0)
        password, key = make_operator(), secrets.token_urlsafe(24)
        webhooks, mails = WebhookReceiver(), MailReceiver()
        processes = DemoProcesses(
            free_port(port),
            {
                "DILAMME_API_KEYS": f"demo={key}",
                "DILAMME_WEBHOOK_ALLOW_PRIVATE": "true",  # the receiver is on this machine
                "EMAIL_PORT": str(mails.port),
            },
        )
        try:
            webhooks.start()
            mails.start()
            self.stdout.write("Starting the admin, the API and a worker ...")
            processes.start()
            wrong = self._run(processes.base_url, key, webhooks, mails)
            self._say_where(processes.base_url, password, key)
            if not once:
                self.stdout.write("Serving until Ctrl-C.")
                signal.pause()
        except KeyboardInterrupt:
            self.stdout.write("\nStopping.")
            return
        except DilammeError as error:
            raise CommandError(str(error)) from None
        finally:
            processes.stop()
            webhooks.stop()
            mails.stop()
        if wrong:
            raise CommandError("Not everything ended as it should:\n  " + "\n  ".join(wrong))

    def _run(self, url: str, key: str, webhooks: WebhookReceiver, mails: MailReceiver) -> list[str]:
        """Play it, and return what went wrong."""
        display = Display(sys.stdout)
        with httpx.Client(base_url=url, headers={"X-API-Key": key}, timeout=10) as api:
            play = Play(api, webhooks.url)
            play.put_in()
            jobs = {}
            for jobs in play.watch():
                display.show(play, jobs)
        display.table(play, jobs)
        return play.disappointments(jobs, webhooks=webhooks.received, mails=mails.received)

    def _say_where(self, url: str, password: str, key: str) -> None:
        self.stdout.write(
            f"  Admin      {url}/admin/dilamme/job/   user {OPERATOR}, password {password}\n"
            f"  API        {url}/api/v1/docs          header X-API-Key: {key}\n"
            f"  Health     {url}/health\n"
        )


def make_operator() -> str:
    """Create the operator's account, or give it a new password; returns the password."""
    password = secrets.token_urlsafe(12)
    rights = {"is_staff": True, "is_superuser": True}
    user, _ = get_user_model().objects.get_or_create(username=OPERATOR, defaults=rights)
    user.set_password(password)
    user.save()
    return password


def _as_interrupt(*_: Any) -> None:
    raise KeyboardInterrupt
