"""The job types of the demo: short, and each with something to show."""

import time
import uuid
from typing import Any

from django.conf import settings

from jobs import Context, enqueue, insights, job
from scheduling import Backoff

_SOON = Backoff(base=0.5, factor=2.0, cap=2.0)  # seconds; a demo should not take the default hour


@job(name="demo.greet")
def greet(name: str) -> str:
    """Take a moment, and say hello."""
    time.sleep(0.3)
    return f"Hello, {name}!"


@job(name="demo.flaky", backoff=_SOON)
def flaky(ctx: Context) -> str:
    """Fail twice, then succeed."""
    if ctx.attempt < 3:
        raise ConnectionError(f"The other side did not answer (attempt {ctx.attempt}).")
    return f"It answered on attempt {ctx.attempt}."


@job(name="demo.hopeless", backoff=_SOON, max_attempts=2)
def hopeless() -> None:
    """Fail every time, and end among the dead letters."""
    raise ValueError("This order has no address to send it to; somebody has to look at it.")


@job(name="demo.share_summary")
def share_summary(log_job: uuid.UUID, webhook_url: str, to: str) -> dict[str, str]:
    """Send the summary that another job made to a webhook, and mail it."""
    summary = insights.get_job(log_job).result
    if summary is None:
        raise ValueError(f"The job {log_job} has made no summary to share; look at its error.")
    webhook = enqueue("webhook_delivery", {"url": webhook_url, "payload": summary})
    mail = enqueue("send_email", {"to": to, "subject": _subject(summary), "body": _text(summary)})
    return {"webhook": str(webhook.pk), "mail": str(mail.pk)}


def _subject(summary: dict[str, Any]) -> str:
    state = "CRITICAL" if summary["has_critical"] else "fine"
    return f"[{settings.DEFAULT_FROM_EMAIL}] {summary['source']}: {state}, {summary['error_rate_pct']} % errors"


def _text(summary: dict[str, Any]) -> str:
    lines = [f"{summary['parsed_lines']} of {summary['total_lines']} lines could be read.", ""]
    lines += [f"{level:<10}{count:>6}" for level, count in summary["level_counts"].items()]
    lines += ["", "Most frequent errors:"]
    lines += [f"{error['count']:>6}  {error['message']}" for error in summary["top_errors"]]
    return "\n".join(lines)
