"""The package as a stranger's project meets it: built, installed, plugged in by the lines of the README."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.support import ROOT, database_url

pytestmark = pytest.mark.django_db(transaction=True)

SETTINGS = """
    import environ
    SECRET_KEY = "a stranger's"
    DATABASES = {"default": environ.Env().db("DATABASE_URL")}
    ROOT_URLCONF = "urls"
    STATIC_URL = "static/"
    USE_TZ = True
    INSTALLED_APPS = [%s "django.contrib.admin", "django.contrib.auth", "django.contrib.contenttypes",
                      "django.contrib.sessions", "django.contrib.messages", %s]
    MIDDLEWARE = ["django.contrib.sessions.middleware.SessionMiddleware",
                  "django.contrib.auth.middleware.AuthenticationMiddleware",
                  "django.contrib.messages.middleware.MessageMiddleware"]
    TEMPLATES = [{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True,
                  "OPTIONS": {"context_processors": ["django.template.context_processors.request",
                                                     "django.contrib.auth.context_processors.auth",
                                                     "django.contrib.messages.context_processors.messages"]}}]
    DILAMME = {"API_KEYS": {"shop": "a-key-of-more-than-sixteen"}}
"""
URLS = """
    from django.contrib import admin
    from django.urls import include, path
    urlpatterns = [path("admin/", admin.site.urls), path("", include("jobs.urls"))]
"""
TASKS = """
    from jobs import job

    @job
    def send_receipt(order_id: int) -> dict:
        return {"sent_for": order_id}
"""
USE = """
    import django; django.setup()
    from django.test import Client
    from shop.tasks import send_receipt
    job = send_receipt.enqueue(7)
    from django.core.management import call_command
    try:
        call_command("runworker", "--drain")
    except SystemExit as end:
        assert end.code == 0
    answer = Client().get(f"/api/v1/jobs/{job.pk}", headers={"X-API-Key": "a-key-of-more-than-sixteen"})
    assert answer.json()["data"]["result"] == {"sent_for": 7}, answer.content
    from django.contrib.auth.models import User
    browser = Client(); browser.force_login(User.objects.create_superuser("ada"))
    page = browser.get(f"/admin/dilamme/job/{job.pk}/change/")
    assert page.status_code == 200, page.content
    assert b"dilamme-badge" in browser.get("/admin/dilamme/job/").content
    print("all well")
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """The wheel, built and unpacked."""
    place = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", place], cwd=ROOT, check=True)
    (wheel,) = place.glob("*.whl")
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target", place / "site", wheel],
        check=True,
    )
    return place / "site"


@pytest.mark.parametrize("first", [True, False], ids=["first", "last"])
@pytest.mark.parametrize("channels", [True, False], ids=["with channels", "without channels"])
def test_five_lines_are_enough(installed, tmp_path, first, channels):
    """A project with the README's lines checks, enqueues, runs, and shows its job; Dilamme may come first or last."""
    ours, theirs = '"jobs", "workers", "shop",', '"channels",' if channels else ""
    before, after = (ours, theirs) if first else ("", f"{ours} {theirs}")
    files = {"settings": SETTINGS % (before, after), "urls": URLS, "shop/__init__": "", "shop/tasks": TASKS, "use": USE}
    (tmp_path / "shop").mkdir()
    for name, text in files.items():
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(text))
    environment = {
        **os.environ,
        "DATABASE_URL": database_url(),
        "DJANGO_SETTINGS_MODULE": "settings",
        "PYTHONPATH": f"{tmp_path}:{installed}",
    }
    for command in (["-m", "django", "check", "--fail-level", "WARNING"], ["use.py"]):
        run = subprocess.run(
            [sys.executable, *command], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert run.returncode == 0, run.stdout + run.stderr
    assert "all well" in run.stdout
