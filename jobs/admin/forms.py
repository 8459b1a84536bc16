"""What the forms here share: a field for payloads, and how the refusal of a service comes to stand at its field.

A form asks a service what may be, and holds no rule of its own.
"""

import json
from typing import Any

from django import forms

from jobs.errors import DilammeError, InvalidJob, UnknownType


class PayloadField(forms.Field):
    """A payload as JSON text. What a service would refuse is left to the service."""

    widget = forms.Textarea

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"required": False, "help_text": "The handler's arguments, as a JSON object.", **options})

    def to_python(self, value: Any) -> Any:
        """Return the value that the text stands for; without text no arguments."""
        text = str(value or "").strip()
        try:
            found = json.loads(text) if text else {}
        except (ValueError, RecursionError) as error:
            raise forms.ValidationError(f"This is no JSON that can be read: {error}.") from None
        if not isinstance(found, dict):
            raise forms.ValidationError('Give a JSON object, such as {"order_id": 7}.')
        return found

    def prepare_value(self, value: Any) -> Any:
        """Return a payload as text, and text as it was typed."""
        return value if isinstance(value, str) else json.dumps(value or {}, indent=4, ensure_ascii=False)

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Whether the text stands for something else than before."""
        try:
            before = self.to_python(initial) if isinstance(initial, str) else initial or {}
            return bool(before != self.to_python(data))
        except forms.ValidationError:
            return True


def refuse(form: forms.BaseForm, error: DilammeError, **names: str) -> None:
    """Let the form say what a service said, at the field that it is about; `names` are those that differ here."""
    field = error.field if isinstance(error, InvalidJob) else "type" if isinstance(error, UnknownType) else ""
    field = names.get(field, field)
    form.add_error(field if field in form.fields else None, str(error))
