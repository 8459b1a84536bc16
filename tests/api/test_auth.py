"""Nobody gets in without a key: asked from outside, at every address that there is."""

import re
import uuid
from typing import Any

import pytest
from django.test import Client
from django.urls import URLPattern, get_resolver

from jobs.api.routes import api as ninja_api
from jobs.errors import ConfigurationError
from jobs.models import Job, JobEvent
from tests.api.answers import JOBS, read

pytestmark = pytest.mark.django_db

ID = str(uuid.UUID(int=5))
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
REFUSED = "Send a valid key in the header X-API-Key."

# What anybody may see: no job, and nothing that could be changed.
PUBLIC = {"health", "api/v1/", "api/v1/openapi.json", "api/v1/docs", "^api/v1/"}


def addresses() -> list[str]:
    """Return every address of `jobs.urls`, with an id where one belongs, but for the public ones."""
    found: list[str] = []
    _walk(get_resolver("jobs.urls").url_patterns, "", found)
    return found


def _walk(patterns: list[Any], prefix: str, found: list[str]) -> None:
    for pattern in patterns:
        address = prefix + str(pattern.pattern)
        if not isinstance(pattern, URLPattern):
            _walk(pattern.url_patterns, address, found)
        elif address not in PUBLIC:
            found.append("/" + re.sub("<name>|<str:name>", "some", re.sub("<.*?_id>", ID, address)))


def routes() -> list[tuple[str, str]]:
    """Return method and address of every operation of the API, from its own table."""
    return [
        (method, re.sub("{.*?_id}", ID, f"/api/v1{path}").replace("{name}", "some"))
        for _, router in ninja_api._routers
        for path, view in router.path_operations.items()
        for operation in view.operations
        for method in operation.methods
    ]


def test_the_walk_finds_every_route() -> None:
    """The addresses that are tried below are all that Django serves, and all that the API knows."""
    assert len(routes()) >= 10
    assert {address for _, address in routes()} | {"/metrics"} == set(addresses())
    assert all("<" not in address for address in addresses())


KEYS = [None, "", " ", "wrong", "a-key-that-only-the-tests-kno", "tests", "ключ", "\xff\xfe", "\udcff", "x" * 100_000]


@pytest.mark.parametrize("key", KEYS, ids=lambda key: repr(key)[:12])
@pytest.mark.parametrize(("method", "address"), routes())
def test_every_route_refuses_who_has_no_valid_key(stranger: Client, method: str, address: str, key: str | None) -> None:
    """Without a key, or with one that is wrong in any way, the answer is 401, before anything else is looked at."""
    headers = {} if key is None else {"X-API-Key": key}
    response = stranger.generic(method, address, b"not json", content_type="application/json", headers=headers)
    assert read(response, 401)["message"] == REFUSED


@pytest.mark.parametrize("address", addresses())
def test_no_method_of_any_address_lets_a_stranger_in(stranger: Client, address: str) -> None:
    """A method that is no route is not allowed; none is answered with success, and none with a server error."""
    for method in METHODS:
        response = stranger.generic(method, address)
        assert response.status_code in (401, 405), (method, response.status_code)


@pytest.mark.parametrize(("method", "address"), routes())
def test_a_valid_key_opens_every_route(api: Client, method: str, address: str) -> None:
    """The tests above would be worth nothing if the routes refused everybody."""
    assert api.generic(method, address, b"{}", content_type="application/json").status_code in (200, 404, 422)


@pytest.mark.parametrize(("method", "address"), routes())
@pytest.mark.parametrize("given", [{}, {"API_KEYS": {}}], ids=["unset", "empty"])
def test_without_configured_keys_nobody_gets_in(
    api: Client, settings: Any, given: dict[str, Any], method: str, address: str
) -> None:
    """A host that forgot to set keys has an API that is closed, not open; an empty key opens nothing."""
    settings.DILAMME = given
    for key in ("", "a-key-that-only-the-tests-know"):
        response = api.generic(method, address, headers={"X-API-Key": key})
        assert read(response, 401)["message"] == REFUSED


def test_a_guard_that_fails_lets_nobody_in(api: Client, settings: Any, caplog: pytest.LogCaptureFixture) -> None:
    """With settings that are wrong the answer is a plain 500, logged, and not an open door."""
    settings.DILAMME = {"API_KEYS": {"tests": "short"}}
    assert read(api.get(JOBS), 500)["message"] == "Something went wrong here; it has been logged."
    ((_, error, _),) = [record.exc_info for record in caplog.records if record.name == "dilamme.api"]
    assert isinstance(error, ConfigurationError)


@pytest.mark.parametrize("place", ["query", "cookie", "authorization"])
def test_a_key_counts_in_its_header_only(stranger: Client, key: str, place: str) -> None:
    """A key in an address ends in logs, and one in a cookie is sent by the browser for any site that asks."""
    stranger.cookies["X-API-Key"] = key if place == "cookie" else ""
    query = f"?X-API-Key={key}" if place == "query" else ""
    headers = {"Authorization": f"Bearer {key}"} if place == "authorization" else {}
    read(stranger.get(JOBS + query, headers=headers), 401)


def test_a_session_of_the_admin_is_no_key(stranger: Client, admin_user: Any) -> None:
    """Who is logged in to the admin cannot be made to call the API by a foreign site."""
    stranger.force_login(admin_user)
    read(stranger.post(JOBS, {"type": "free"}, content_type="application/json"), 401)
    assert not Job.objects.exists()


def test_each_key_has_a_name_that_is_kept_in_the_history(stranger: Client, settings: Any) -> None:
    """Who did it can be told from the event; the key itself is written nowhere."""
    keys = {"web": "first-key-of-this-test", "ops": "second-key-of-this-test"}
    settings.DILAMME = {"API_KEYS": keys}
    for name, key in keys.items():
        job = Job.objects.create(type="free")
        stranger.post(f"{JOBS}/{job.pk}/cancel", headers={"X-API-Key": key})
        assert JobEvent.objects.get(job=job).actor == f"api:{name}"


def test_what_anybody_may_see_tells_nothing_of_jobs(stranger: Client) -> None:
    """Health and documentation are open; they name no job, no type and no worker."""
    Job.objects.create(type="secret_type", queue="secret_queue")
    for address in ("/health", "/api/v1/openapi.json", "/api/v1/docs"):
        response = stranger.get(address)
        assert response.status_code == 200
        assert b"secret" not in response.content
