"""How tests use the lists and pages as somebody who may do certain things."""

from typing import Any

from django.test import Client
from django.urls import reverse

from tests.admin.rows import make_user


def client_of(*permissions: str) -> Client:
    """Return the client of somebody with these permissions."""
    client = Client()
    client.force_login(make_user("somebody", *permissions))
    return client


def act(client: Client, model: str, action: str, *keys: object) -> Any:
    """Choose an action for some rows of a list."""
    chosen = {"action": f"{action}_selected", "_selected_action": [str(key) for key in keys]}
    return client.post(reverse(f"admin:dilamme_{model}_changelist"), chosen, follow=True)


def press(client: Client, model: str, button: str, key: object) -> Any:
    """Press a button on the page of a row."""
    return client.post(reverse(f"admin:dilamme_{model}_{button}", args=[key]), follow=True)


def problems(response: Any) -> dict[str, list[str]]:
    """Return what a form complains of, by field."""
    form = response.context["adminform"].form if "adminform" in response.context else response.context["form"]
    return {name: list(errors) for name, errors in form.errors.items()}
