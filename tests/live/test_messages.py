"""What notifications and browsers may say, and what is made of what they may not."""

import json
import uuid

import pytest

from jobs.live.messages import WATCHED, Moved, decode, encode, watched
from jobs.signals import Change

ID = "01a22d7e-da19-7015-aedc-77b7db197889"


def _changes(count: int) -> list[Change]:
    return [Change(uuid.uuid4(), "completed", "completed", 1) for _ in range(count)]


@pytest.mark.parametrize("count", [0, 1, 200, 201, 1000])
def test_what_is_encoded_is_decoded(count):
    """Any number of changes arrives, in order, in notifications that PostgreSQL takes."""
    changes = _changes(count)
    messages = encode(changes)
    assert all(len(message) < 8000 for message in messages)
    assert [id_ for message in messages for id_ in decode(message).ids] == [str(change.job_id) for change in changes]
    assert all(decode(message).complete for message in messages)


def test_a_job_is_named_once():
    """A job that moved twice is one job."""
    change = _changes(1)[0]
    assert decode(encode([change, change])[0]).ids == [str(change.job_id)]


def test_incompleteness_is_told_without_names():
    """That more moved than is named needs no names."""
    assert encode([], complete=False) == ['{"ids":[],"complete":false}']


@pytest.mark.parametrize(
    "notification",
    ["", "x", "null", "[]", "{}", '{"ids":1,"complete":true}', '{"ids":[1],"complete":true}', '{"ids":[]}', "[" * 7000],
)
def test_a_notification_that_cannot_be_read(notification):
    """What anybody with a connection may send is no error; it may be news of a newer version."""
    assert decode(notification) == Moved(complete=False)


def test_what_a_browser_watches():
    """Ids are taken in any way of writing them."""
    assert watched(json.dumps({"watch": [ID.upper(), f"{{{ID}}}"]})) == {ID}
    assert watched('{"watch": []}') == frozenset()


@pytest.mark.parametrize(
    "request_",
    [
        None, "", "x", "null", "1", "[]", "{}", '{"watch": null}', '{"watch": {}}', '{"watch": [1]}',
        '{"watch": [null]}', '{"watch": [[]]}', '{"watch": ["x"]}', '{"watch": ["\\u0000"]}', "[" * 15_000,
        json.dumps({"watch": [ID] * (WATCHED + 1)}), json.dumps({"watch": [], "padding": "x" * 20_000}),
    ],
)  # fmt: skip
def test_what_a_browser_may_not_say(request_):
    """Whatever is not a list of at most so many ids is refused as a whole."""
    assert watched(request_) is None
