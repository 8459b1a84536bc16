"""What handlers say while they run: shown, kept, and at nobody's cost."""

from collections.abc import Callable

import pytest

from jobs import Context
from jobs.context import LINES_LIMIT
from jobs.models import Job, JobEvent
from tests.support import WorkerThread, handler, wait_for, wait_until

pytestmark = pytest.mark.django_db(transaction=True)


def say(ctx: Context, lines: int = 2) -> None:
    """Tell of everything."""
    for number in range(lines):
        ctx.progress(number + 1, lines, f"line {number}")
        ctx.log(f"said {number}")


def test_progress_and_lines_are_kept_with_the_job(start_worker: Callable[..., WorkerThread]) -> None:
    """The latest progress stays when the job has ended; the lines stand in its history in their order."""
    with handler(say) as task:
        start_worker()
        made = task.enqueue()
        wait_for(made.pk, "completed")
        found = wait_until(lambda: Job.objects.get(pk=made.pk).progress)
    assert found == {"done": 2, "total": 2, "message": "line 1"}
    lines = JobEvent.objects.filter(job=made.pk, kind="logged").order_by("id")
    assert list(lines.values_list("error", "attempt")) == [("said 0", 1), ("said 1", 1)]


def test_a_flood_is_cut_and_says_so(start_worker: Callable[..., WorkerThread]) -> None:
    """Neither the history nor the handler drowns."""
    with handler(say) as task:
        start_worker()
        made = task.enqueue(lines=3 * LINES_LIMIT)
        wait_for(made.pk, "completed")
        lines = JobEvent.objects.filter(job=made.pk, kind="logged")
        wait_until(lambda: lines.count() == LINES_LIMIT)
        last = lines.order_by("-id").first()
    assert last is not None
    assert last.error.endswith("(the lines that follow are dropped)")


def test_what_cannot_be_stored_is_mended_and_nonsense_is_refused(start_worker: Callable[..., WorkerThread]) -> None:
    """A NUL becomes a mark; a progress that is no number is the handler's error."""

    def odd(ctx: Context) -> None:
        ctx.log("a\x00b")
        with pytest.raises(ValueError, match="done is nan; give a finite number"):
            ctx.progress(float("nan"))

    with handler(odd) as task:
        start_worker()
        made = task.enqueue()
        assert wait_for(made.pk, "completed", "failed").status == "completed"
        wait_until(lambda: JobEvent.objects.filter(job=made.pk, kind="logged", error="a\ufffdb").exists())


def test_a_run_that_was_lost_says_nothing_about_the_next() -> None:
    """Progress is kept behind the attempt."""
    from jobs.lifecycle.reporting import Progress, report
    from jobs.queries import DjangoSession

    made = Job.objects.create(type="t", attempt=2)
    report(DjangoSession(), made.pk, [Progress(made.pk, 1, "{}")], [])
    assert Job.objects.get(pk=made.pk).progress is None
    report(DjangoSession(), made.pk, [Progress(made.pk, 2, '{"done": 1}')], [])
    assert Job.objects.get(pk=made.pk).progress == {"done": 1}
