"""`manage.py runworker` as the person meets it who types it."""

import subprocess
import sys

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import override_settings

from tests.support import ROOT, process_environment
from workers.checks import check_runworker

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--queues", "mail,no spaces"], "--queues contains 'no spaces'; use 1 to 100 letters, digits"),
        (["--queues", ""], "--queues contains ''; use 1 to 100 letters"),
        (["--concurrency", "0"], "--concurrency is 0; use 1 or more."),
        (["--grace", "-1"], "--grace is -1.0; use 0 or more seconds."),
        (["--grace", "nan"], "--grace is nan; use 0 or more seconds."),
        (["--processes", "0"], "--processes is 0; use 1 or more."),
    ],
)
def test_options_that_make_no_sense_are_refused(options, text):
    """The error names the option, its value and what to use."""
    with pytest.raises(CommandError, match=text.replace("(", r"\(")):
        call_command("runworker", *options)


def test_it_does_not_start_on_tables_that_are_missing():
    """Before `migrate` it says what to do instead of failing later."""
    with connection.cursor() as cursor:
        cursor.execute("delete from django_migrations where app = 'dilamme'")
    try:
        with pytest.raises(
            CommandError, match=r"Dilamme's tables are missing or out of date: run `manage.py migrate` first"
        ):
            call_command("runworker", "--drain")
    finally:
        call_command("migrate", "dilamme", fake=True, verbosity=0)


def test_called_with_channel_names_it_is_channels_command():
    """Channels' own worker starts, so that neither app takes the other's command away."""
    run = subprocess.Popen(
        [sys.executable, "manage.py", "runworker", "some-channel"],
        cwd=ROOT,
        env=process_environment(PYTHONUNBUFFERED="1", CHANNELS_LOG="1"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        line = next(line for line in run.stdout if "channels" in line)
        assert "Running worker for channels ['some-channel']" in line
    finally:
        run.kill()
        run.communicate()


def test_the_check_says_when_another_app_took_the_name():
    """With Channels before `workers` in INSTALLED_APPS the check names it and the way out."""
    assert check_runworker() == []
    from django.core.management import get_commands

    get_commands.cache_clear()
    with override_settings(INSTALLED_APPS=["channels", "jobs", "workers"]):
        (warning,) = check_runworker()
    get_commands.cache_clear()
    assert warning.msg == "`manage.py runworker` starts the command of 'channels', not Dilamme's worker."
    assert "Put 'workers' before 'channels' in INSTALLED_APPS" in warning.hint


def test_a_drain_from_the_command_line_ends_with_zero():
    """`--drain` on an empty queue ends at once."""
    with pytest.raises(SystemExit) as end:
        call_command("runworker", "--drain")
    assert end.value.code == 0
