"""How the tests of the REST API read an answer."""

import json
from typing import Any

JOBS = "/api/v1/jobs"
WORKFLOWS = "/api/v1/workflows"


def read(response: Any, status: int) -> dict[str, Any]:
    """Return the body of an answer that must have this status and be in the envelope."""
    shown = response.content[:500]
    assert response.status_code == status, shown
    assert response.headers["Content-Type"] == "application/json; charset=utf-8"
    body = json.loads(response.content)
    assert list(body) == ["message", "data", "errors", "meta"], shown
    assert isinstance(body["message"], str)
    assert body["message"]
    assert isinstance(body["meta"], dict)
    for problem in body["errors"]:
        assert list(problem) == ["field", "message"], shown
        assert all(problem.values()), shown
    assert body["data"] is None or status < 400 or status == 503, shown
    return body  # type: ignore[no-any-return]


def problems(response: Any, status: int = 422) -> list[tuple[str, str]]:
    """Return what is wrong with a request, as fields and messages."""
    body = read(response, status)
    assert body["message"] == "The request is not valid."
    return [(problem["field"], problem["message"]) for problem in body["errors"]]
