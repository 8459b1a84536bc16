"""How parts of a job look: badge, priority, times, durations, errors. Every text is escaped here or by the template.

Values come from handlers and callers, so none of them is ever trusted to be HTML. Nothing here reads the database.
"""

import uuid
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import Truncator

from jobs.states import Status

NOTHING = "–"  # noqa: RUF001  the sign for "nothing here"
PRIORITIES = {1.0: "High", 2.0: "Medium", 3.0: "Low"}
_LINE = 160  # characters of an error in a list
_TOOLTIP = 2_000  # characters of an error in a title attribute: the detail page has all of it


def badge(job_id: uuid.UUID, status: str) -> SafeString:
    """Return the status as a badge that the live view keeps up to date."""
    return format_html(
        '<span class="dilamme-badge dilamme-status-{}" data-dilamme-job="{}">{}</span>',
        status,
        job_id,
        Status(status).label,
    )


def tag(word: str, colour: str) -> SafeString:
    """Return a word that looks like the badge of the status `colour`, and stays as it is."""
    return format_html('<span class="dilamme-badge dilamme-status-{}">{}</span>', colour, word)


def priority_name(priority: float) -> str:
    """Return High, Medium or Low, or the number between them."""
    return PRIORITIES.get(priority, f"{priority:g}")


def moment(at: datetime | None) -> str:
    """Return a time for a list: of today the time alone, else with the date; all of it is in the title."""
    if at is None:
        return NOTHING
    local, today = _local(at), timezone.localdate()
    if local.date() == today:
        shown = f"{local:%H:%M:%S}"
    else:
        shown = date_format(local, "M j, H:i" if local.year == today.year else "M j Y, H:i")
    return format_html('<time datetime="{}" title="{}">{}</time>', at.isoformat(), full_moment(at), shown)


def full_moment(at: datetime | None) -> str:
    """Return a time with its date and zone."""
    return f"{_local(at):%Y-%m-%d %H:%M:%S %Z}" if at else NOTHING


def _local(at: datetime) -> datetime:
    try:
        return timezone.localtime(at)
    except OverflowError:  # a job may be due at the end of time, which is later still in other zones
        return at


def seconds(duration: float | timedelta | None) -> str:
    """Return a duration in the unit a reader would choose: 12 ms, 3.4 s, 5 min 10 s, 2 h 5 min."""
    if duration is None:
        return NOTHING
    total = duration.total_seconds() if isinstance(duration, timedelta) else duration
    if total < 1:
        return f"{total * 1000:.0f} ms"
    if total < 60:
        return f"{total:.1f} s"
    minutes, rest = divmod(round(total), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def with_title(text: str, title: str) -> SafeString:
    """Return text that says more to a pointer that rests on it."""
    return format_html('<span title="{}">{}</span>', title, text)


def link(address: str, text: object) -> SafeString:
    """Return text that leads to an address."""
    return format_html('<a href="{}">{}</a>', address, text)


def error_line(error: str) -> str:
    """Return the first line of an error, cut, with more of the text as its title."""
    if not error.strip():
        return NOTHING
    first = error.strip().splitlines()[0]
    shown, whole = Truncator(first).chars(_LINE), Truncator(error).chars(_TOOLTIP)
    return format_html('<span class="dilamme-error" title="{}">{}</span>', whole, shown)


def block(text: str | None) -> str:
    """Return text of several lines as it is."""
    return format_html('<pre class="dilamme-text">{}</pre>', text) if text else NOTHING


def progress(told: Any) -> str:
    """Return how far a handler says it is: a bar if it named a total, then the numbers and its words."""
    if not isinstance(told, dict):
        return NOTHING
    done, total, message = told.get("done"), told.get("total"), str(told.get("message") or "")
    if not isinstance(done, int | float):
        return message or NOTHING
    of = f" of {total:,g}" if isinstance(total, int | float) else ""
    said = f"{done:,g}{of} {message}".strip()
    if not isinstance(total, int | float) or total <= 0:
        return said
    # Written here, because a template would write numbers as the reader's language does.
    share = f"{min(1.0, max(0.0, done / total)):.4f}"
    return format_html('<progress class="dilamme-progress" max="1" value="{}"></progress> {}', share, said)
