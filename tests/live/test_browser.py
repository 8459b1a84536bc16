"""The pages in a real browser, served by a real daphne, moved by a real worker, under a strict security policy."""

import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connections
from playwright.sync_api import Browser, Page, expect, sync_playwright

from jobs.states import Status
from tests.admin.rows import make_job, make_user
from tests.support import handler, wait_for
from tests.web import WebServer

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

_ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
_WITHIN = 20_000  # ms until a page must show what happened
LIVE = "[data-dilamme-live=live]"


@pytest.fixture(scope="module")
def server(django_db_setup, tmp_path_factory) -> Iterator[WebServer]:
    """Serve the reference host; its log must be free of tracebacks."""
    server = WebServer(tmp_path_factory.mktemp("server") / "daphne.log", "tests.live.strict_host:application")
    yield server
    server.stop()
    assert "Traceback" not in server.log.read_text()


@pytest.fixture
def apart(transactional_db) -> Iterator[Callable[..., Any]]:
    """Call functions that use the database in a thread of their own: Playwright runs an event loop in this one."""
    with ThreadPoolExecutor(1) as thread:
        yield lambda function, *args, **kwargs: thread.submit(function, *args, **kwargs).result()
        thread.submit(connections.close_all).result()


@pytest.fixture
def browser(apart) -> Iterator[Browser]:
    """Start Chromium."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        give_up = pytest.fail if os.environ.get("CI") else pytest.skip  # nothing may be skipped unseen where it counts
        give_up(reason="the browser tests need Chromium (Debian: apt install chromium)")
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=path, args=_ARGUMENTS)


@pytest.fixture
def page(browser, server, apart) -> Iterator[Page]:
    """Log in as an operator; in the end the console must be free of errors."""
    apart(make_user, "ada", "view_job", "retry_job", "cancel_job", password="a long password")
    page = browser.new_page(base_url=server.address)
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda message: complaints.append(f"{message.text} {message.location}"))
    page.route("**/favicon.ico", lambda route: route.fulfill(status=204))
    page.goto("/admin/")
    page.fill("#id_username", "ada")
    page.fill("#id_password", "a long password")
    page.click("[type=submit]")
    expect(page.get_by_text("Dead letters").first).to_be_visible()
    yield page
    # A server that is away is told of in the console, whatever the page does about it.
    assert [text for text in complaints if "ERR_CONNECTION_REFUSED" not in text] == []


def _open(page: Page, path: str) -> None:
    """Open a page that is live, and mark it, so that a reload would be noticed."""
    page.goto(path)
    expect(page.locator(LIVE)).to_be_visible(timeout=_WITHIN)
    page.evaluate("window.marker = 'not reloaded'")


def _is_the_same(page: Page) -> bool:
    return page.evaluate("window.marker") == "not reloaded"


def _badge(page: Page, job_id: object):
    return page.locator(f"[data-dilamme-job='{job_id}']").first


@pytest.fixture
def task() -> Iterator[Callable]:
    """Register a job type that does nothing."""

    def idle() -> None:
        """Return at once."""

    with handler(idle) as task:
        yield task


@pytest.mark.parametrize("path", ["/admin/dilamme/job/", "/admin/dilamme/job/{}/change/"], ids=["list", "page"])
def test_a_badge_follows_its_job(page, apart, task, start_worker, path):
    """A pending job that a worker completes is shown as completed, without a reload."""
    job = apart(task.enqueue)
    _open(page, path.format(job.pk))
    expect(_badge(page, job.pk)).to_have_text("Pending")
    start_worker()
    apart(wait_for, job.pk, Status.COMPLETED)
    expect(_badge(page, job.pk)).to_have_text("Completed", timeout=_WITHIN)
    expect(_badge(page, job.pk)).to_have_class("dilamme-badge dilamme-status-completed dilamme-moved")
    expect(page.locator("[data-dilamme-hint]")).to_contain_text("changed")
    assert _is_the_same(page)


def test_new_jobs_are_counted(page, apart, task):
    """A list says how many jobs have come since it was opened, and the hint leads to them."""
    _open(page, "/admin/dilamme/job/")
    apart(task.enqueue_many, [{}, {}, {}])
    hint = page.locator("[data-dilamme-hint]")
    expect(hint).to_have_text("3 new jobs: reload", timeout=_WITHIN)
    assert _is_the_same(page)
    hint.click()
    expect(page.locator("[data-dilamme-job]")).to_have_count(3)


def test_a_restart_of_the_server_is_survived(page, server, apart, task, start_worker):
    """A page whose server was away says so, comes back by itself, and catches up with what it missed."""
    job = apart(task.enqueue)
    _open(page, "/admin/dilamme/job/")
    server.stop()
    expect(page.locator("[data-dilamme-state]")).to_have_text("Offline", timeout=_WITHIN)
    start_worker()
    apart(wait_for, job.pk, Status.COMPLETED)
    server.start()
    expect(_badge(page, job.pk)).to_have_text("Completed", timeout=2 * _WITHIN)
    expect(page.locator(LIVE)).to_be_visible()
    assert _is_the_same(page)


def test_the_buttons_of_a_page(page, apart):
    """Cancel and Retry can be pressed one after the other, and each is answered."""
    job = apart(make_job)
    _open(page, f"/admin/dilamme/job/{job.pk}/change/")
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_text("Cancelled: 1 job.")).to_be_visible()
    page.get_by_role("button", name="Retry").click()
    expect(page.get_by_text("Will run again: 1 job.")).to_be_visible()
    expect(_badge(page, job.pk)).to_have_text("Pending")


def test_hostile_text_does_not_run(page, apart):
    """Markup in any field of a job is seen and not obeyed, and the page keeps its shape."""
    text = "</pre></script><img src=x onerror='window.pwned = 1'><script>window.pwned = 1</script>"
    fields = {"type": text, "queue": text, "last_error": text, "payload": {text: text}, "result": [text]}
    job = apart(make_job, Status.FAILED, **fields)
    for path in ("job/", "deadletter/", f"job/{job.pk}/change/"):
        _open(page, f"/admin/dilamme/{path}")
        assert page.evaluate("window.pwned") is None
        expect(page.locator("#content img[src=x]")).to_have_count(0)
        expect(_badge(page, job.pk)).to_have_text("Failed")


def test_the_benchmark_is_drawn(page):
    """Bars stand beside their values, each algorithm in a colour of its own, with no help from a script or a style."""
    page.goto("/admin/dilamme/job/")
    page.get_by_role("link", name="Heap against wheel").click()
    page.fill("[name=n]", "500")
    page.get_by_role("button", name="Run").click()
    expect(page.locator(".dilamme-line")).to_have_count(12, timeout=_WITHIN)
    bars = page.locator(".dilamme-line rect").all()
    assert max(bar.bounding_box()["width"] for bar in bars) > 200
    assert min(bar.bounding_box()["width"] for bar in bars) > 0
    assert len({bar.evaluate("bar => getComputedStyle(bar).fill") for bar in bars}) == 2
    expect(page.get_by_role("row", name="All entries: insert")).to_contain_text(" ms")
