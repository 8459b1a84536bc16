"""The route of the benchmark: what it takes and answers, and that nobody else has to wait for it."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from asgiref.testing import ApplicationCommunicator
from django.core.handlers.asgi import ASGIHandler
from django.test import Client

from jobs import benchmarking
from jobs.api.benchmark import FiguresOut
from jobs.benchmarking import N_LIMIT, RUNS
from scheduling.comparison import MEASURES
from tests.api.answers import problems, read
from tests.support import measuring, wait_until

RUN = "/api/v1/benchmark/run"


def post(api: Client, body: str) -> Any:
    """Ask for a benchmark."""
    return api.post(RUN, body, content_type="application/json")


@pytest.mark.parametrize("algorithm", ["heap", "wheel"])
def test_one_algorithm(api: Client, algorithm: str) -> None:
    """Its figures are answered, and no ratio."""
    body = read(post(api, json.dumps({"n": 1_000, "algorithm": algorithm})), 200)
    assert body["message"] == f"Measured on 1,000 entries, medians of {RUNS} runs."
    assert body["data"].keys() == {"n", "runs", "figures", "heap_to_wheel"}
    assert list(body["data"]["figures"]) == [algorithm]
    assert tuple(body["data"]["figures"][algorithm]) == MEASURES
    assert body["data"]["heap_to_wheel"] is None


@pytest.mark.parametrize("body", ['{"n": 50, "algorithm": "both"}', '{"n": 50}'])
def test_both_algorithms(api: Client, body: str) -> None:
    """Both are measured, also when nothing else was said, and each ratio is that of their figures."""
    data = read(post(api, body), 200)["data"]
    assert (data["n"], data["runs"], list(data["figures"])) == (50, RUNS, ["heap", "wheel"])
    for measure in MEASURES:
        heap, wheel = (data["figures"][name][measure] for name in ("heap", "wheel"))
        assert heap > 0
        assert data["heap_to_wheel"][measure] == heap / wheel


def test_the_figures_are_described(api: Client) -> None:
    """The documentation of the API has all of them, with their units."""
    assert tuple(FiguresOut.model_fields) == MEASURES
    schemas = api.get("/api/v1/openapi.json").json()["components"]["schemas"]
    assert all(part["description"] for part in schemas["FiguresOut"]["properties"].values())
    assert schemas["BenchmarkIn"]["properties"]["n"]["maximum"] == N_LIMIT


@pytest.mark.parametrize(
    ("body", "field", "message"),
    [
        ("", "body", "Field required"),
        ("{}", "n", "Field required"),
        ('{"n": 0}', "n", "Input should be greater than or equal to 1"),
        ('{"n": -1}', "n", "Input should be greater than or equal to 1"),
        ('{"n": 100001}', "n", "Input should be less than or equal to 100000"),
        ('{"n": 1e300}', "n", "Unable to parse input string as an integer, exceeded maximum size"),
        ('{"n": 1.5}', "n", "Input should be a valid integer, got a number with a fractional part"),
        ('{"n": null}', "n", "Input should be a valid integer"),
        ('{"n": 5, "algorithm": "tree"}', "algorithm", "Input should be 'heap', 'wheel' or 'both'"),
        ('{"n": 5, "algorithm": null}', "algorithm", "Input should be 'heap', 'wheel' or 'both'"),
        ('{"n": 5, "algorithm": "heap; rm -rf /"}', "algorithm", "Input should be 'heap', 'wheel' or 'both'"),
        ('{"n": 5, "runs": 100}', "runs", "Extra inputs are not permitted"),
    ],
)
def test_what_is_out_of_bounds_is_422(api: Client, body: str, field: str, message: str) -> None:
    """The field is named, and nothing is measured."""
    ((found, said),) = problems(post(api, body))
    assert (found, said) == (field, message) or (found == field and said.startswith(message))


@pytest.mark.parametrize("headers", [{}, {"X-API-Key": "wrong"}])
def test_it_needs_a_key(stranger: Client, headers: dict[str, str]) -> None:
    """Without one nothing is measured."""
    response = stranger.post(RUN, {"n": 5}, content_type="application/json", headers=headers)
    assert read(response, 401)["message"] == "Send a valid key in the header X-API-Key."


@pytest.mark.parametrize("method", ["get", "put", "delete"])
def test_another_method_is_405(api: Client, method: str) -> None:
    """Also a route that is a coroutine says in the envelope what it takes."""
    response = getattr(api, method)(RUN)
    assert read(response, 405)["message"] == "Use POST here."
    assert response.headers["Allow"] == "POST"


def test_a_host_with_a_transaction_for_each_request_can_ask(api: Client, settings: Any) -> None:
    """ATOMIC_REQUESTS, which Django cannot combine with a coroutine, is kept away from this one route."""
    from django.db import connections

    connections["default"].settings_dict["ATOMIC_REQUESTS"] = True
    try:
        assert read(post(api, '{"n": 20, "algorithm": "heap"}'), 200)["data"]["n"] == 20
    finally:
        connections["default"].settings_dict["ATOMIC_REQUESTS"] = False


def test_too_long_is_503(api: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client learns that the machine is too slow for so many, and what to ask for instead."""
    monkeypatch.setitem(benchmarking.run.__kwdefaults__, "time_limit", 0.01)
    message = read(post(api, '{"n": 100000}'), 503)["message"]
    assert message == "100,000 entries took more than 0.01 s here: give a smaller n."
    assert measuring() == []


def test_a_failure_is_500_and_tells_nothing(api: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the child cannot even start, the client sees neither path nor reason."""
    monkeypatch.setattr("sys.executable", "/nowhere/python3")
    response = post(api, '{"n": 20}')
    assert read(response, 500)["message"] == "The benchmark failed; the reason has been logged."
    assert b"nowhere" not in response.content


# While one runs


async def started() -> None:
    """Wait until a benchmark runs."""
    await asyncio.to_thread(wait_until, measuring)


@pytest.fixture
async def web(key: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the real ASGI application."""
    transport = httpx.ASGITransport(ASGIHandler())
    async with httpx.AsyncClient(
        transport=transport, base_url="http://localhost", headers={"X-API-Key": key}, timeout=60
    ) as client:
        yield client


async def test_it_answers_alike_where_it_is_awaited(web: httpx.AsyncClient) -> None:
    """Under ASGI as well, figures, a method that is none, and a wrong request are answered in the envelope."""
    assert read(await web.post(RUN, json={"n": 20}), 200)["data"]["n"] == 20
    assert read(await web.get(RUN), 405)["message"] == "Use POST here."
    assert problems(await web.post(RUN, json={"n": 0}))[0][0] == "n"
    assert read(await web.post(RUN, json={"n": 20}, headers={"X-API-Key": "wrong"}), 401)["data"] is None


async def test_others_are_answered_meanwhile(web: httpx.AsyncClient) -> None:
    """A request that comes while a benchmark runs is answered before it, and a second benchmark is refused."""
    running = asyncio.create_task(web.post(RUN, json={"n": 20_000}))
    await started()
    assert (await web.get("/api/v1/nowhere")).status_code == 404
    refused = await web.post(RUN, json={"n": 20})
    assert not running.done()
    assert read(refused, 409)["message"].startswith("Another benchmark is running here")
    assert read(await running, 200)["data"]["n"] == 20_000
    assert read(await web.post(RUN, json={"n": 20}), 200)["data"]["n"] == 20


async def test_a_client_that_hangs_up_ends_its_benchmark(key: str) -> None:
    """The child is gone when the request is, and the next benchmark may run."""
    body = json.dumps({"n": N_LIMIT}).encode()
    headers = [(b"host", b"localhost"), (b"x-api-key", key.encode()), (b"content-type", b"application/json")]
    scope = {
        "type": "http",
        "method": "POST",
        "path": RUN,
        "headers": headers,
        "query_string": b"",
        "http_version": "1",
    }
    connection = ApplicationCommunicator(ASGIHandler(), scope)
    await connection.send_input({"type": "http.request", "body": body})
    await started()
    await connection.send_input({"type": "http.disconnect"})
    await connection.wait(timeout=20)
    assert measuring() == []
    assert (await benchmarking.run(20, "heap")).n == 20
