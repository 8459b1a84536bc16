"""Makes the README's picture: runs the demo, logs in to its admin with Chromium, and takes a screenshot.

Run it as `make picture`; it needs Chromium.
"""

import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "images" / "admin.png"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]


def main() -> None:
    """Run the demo, take the picture, end the demo."""
    command = [sys.executable, "-u", "manage.py", "demo", "--port", "0"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as demo:
        assert demo.stdout is not None
        try:
            line = next(line for line in demo.stdout if "Admin" in line)
            address, user, password = re.findall(r"(http\S+).*user (\S+), password (\S+)", line)[0]
            take(address, user, password)
        finally:
            demo.send_signal(signal.SIGTERM)
            demo.stdout.read()


def take(address: str, user: str, password: str) -> None:
    """Log in and take the picture of the list of jobs."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        page = browser.new_page(viewport={"width": 1440, "height": 720}, device_scale_factor=1)
        page.goto(address)
        page.fill("#id_username", user)
        page.fill("#id_password", password)
        page.click("input[type=submit]")
        page.wait_for_selector("[data-dilamme-live=live]")
        page.screenshot(path=PICTURE)
        browser.close()


if __name__ == "__main__":
    main()
