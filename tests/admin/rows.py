"""Rows as the pages may find them, written past the services that would refuse some of them."""

import uuid
from typing import Any

from django.contrib.auth.models import Permission, User
from django.utils import timezone

from jobs.models import Job
from jobs.states import FINAL, Status


def make_job(status: str = Status.PENDING, **fields: Any) -> Job:
    """Store a job that has this status."""
    fields.setdefault("type", "send_email")
    if status in FINAL:
        fields.setdefault("finished_at", timezone.now())
    if status == Status.PROCESSING:
        fields.setdefault("worker_id", uuid.uuid4())
    return Job.objects.create(status=status, **fields)


def make_user(name: str, *permissions: str, **fields: Any) -> User:
    """Store a user of the admin with some of Dilamme's permissions."""
    user = User.objects.create_user(name, **{"is_staff": True, **fields})
    user.user_permissions.set(Permission.objects.filter(content_type__app_label="dilamme", codename__in=permissions))
    return user
