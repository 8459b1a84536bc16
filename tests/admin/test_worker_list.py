"""The list of workers: who is alive by the database's clock, and what each serves."""

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from jobs.models import Worker


def _worker(seconds: float, **fields) -> Worker:
    lease = timezone.now() + timedelta(seconds=seconds)
    return Worker.objects.create(**{"name": "host:1", "concurrency": 4, "lease_expires_at": lease, **fields})


@pytest.mark.parametrize(
    ("seconds", "stopping", "word"), [(60, False, "Alive"), (60, True, "Stopping"), (-60, False, "Lost")]
)
def test_the_state_of_a_worker(viewer, seconds, stopping, word):
    """The lease tells the living from the lost."""
    worker = _worker(seconds, stopping=stopping, queues=["mail", "slow"], types=["send_email"])
    page = viewer.get(reverse("admin:dilamme_worker_changelist")).text
    assert f">{word}</span>" in page
    assert "mail, slow" in page
    assert "send_email" in viewer.get(reverse("admin:dilamme_worker_change", args=[worker.pk])).text


def test_a_worker_of_all_queues(viewer):
    """A worker that was given no queues serves all."""
    _worker(60)
    assert '<td class="field-serves">all</td>' in viewer.get(reverse("admin:dilamme_worker_changelist")).text
