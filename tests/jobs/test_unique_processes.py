"""One unique key, asked for at one moment by processes that share nothing but the database: in Python and over REST."""

import json
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from jobs.models import Job
from jobs.queries import connect
from tests.support import ROOT, process_environment, wait_until
from tests.web import WebServer

pytestmark = pytest.mark.django_db(transaction=True)

PROCESSES, ROUNDS = 4, 25
CLIENTS, REQUESTS = 8, 15
BARRIER = 4_715_003  # the first key of advisory locks; the second is the round
KEY = "a-key-that-only-the-tests-know"

# Each round waits for a lock that the test holds until all processes wait for it. What was made is printed, and errors.
ENQUEUE = f"""
import json, sys
import django
django.setup()
from django.db import connection
from jobs import enqueue

def meet(round):
    with connection.cursor() as cursor:
        cursor.execute("select pg_advisory_lock_shared({BARRIER}, %s)", [round])
        cursor.execute("select pg_advisory_unlock_shared({BARRIER}, %s)", [round])

me, rounds, on_conflict = json.loads(sys.argv[1])
for round in range(rounds):
    meet(round)
    try:
        job = enqueue("nap", {{"seconds": me}}, unique_key=f"k{{round}}", on_conflict=on_conflict)
        answer = [str(job.pk), job.created, job.payload["seconds"]]
    except Exception as error:
        answer = [type(error).__name__, False, str(getattr(error, "job_id", error))]
    print(json.dumps(answer))
"""


def enqueue_in_processes(on_conflict: str) -> list[list[list[Any]]]:
    """Have every process enqueue the same key at one moment, round after round; return what each got, by round."""
    with connect() as barrier, ExitStack() as ended:
        for number in range(ROUNDS):
            barrier.execute("select pg_advisory_lock(%s, %s)", [BARRIER, number])
        started = [_start(ended, me, on_conflict) for me in range(PROCESSES)]
        for number in range(ROUNDS):
            wait_until(lambda number=number: _have_met(barrier, number, started), within=60, what="all have met")
            barrier.execute("select pg_advisory_unlock(%s, %s)", [BARRIER, number])
        printed = [process.communicate(timeout=60) for process in started]
    assert [process.returncode for process in started] == [0] * PROCESSES, [errors for _, errors in printed]
    return [list(answers) for answers in zip(*[map(json.loads, out.splitlines()) for out, _ in printed], strict=True)]


def _start(ended: ExitStack, me: int, on_conflict: str) -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        [sys.executable, "-c", ENQUEUE, json.dumps([me, ROUNDS, on_conflict])],
        cwd=ROOT,
        env=process_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    ended.enter_context(process)
    ended.callback(process.kill)
    return process


def _have_met(barrier: Any, number: int, started: list["subprocess.Popen[str]"]) -> bool:
    assert {process.poll() for process in started} == {None}, "a process has ended too early"
    query = """
        select count(*) from pg_locks join pg_database d on d.oid = database
        where d.datname = current_database() and classid = %s and objid = %s and objsubid = 2 and not granted"""
    return barrier.execute(query, [BARRIER, number]).fetchone() == (PROCESSES,)


def holders() -> dict[str, tuple[str, float]]:
    """Return id and payload of the job that has each key, and see that there is one of each."""
    rows = list(Job.objects.values_list("unique_key", "id", "payload__seconds"))
    assert len({key for key, _, _ in rows}) == len(rows)
    return {key: (str(id_), seconds) for key, id_, seconds in rows}


def test_of_processes_that_enqueue_one_key_at_once_one_makes_the_job() -> None:
    """All others get that job back, as it is stored, with `created` False; nobody sees an error."""
    rounds = enqueue_in_processes("return")
    stored = holders()
    for number, answers in enumerate(rounds):
        assert {(id_, seconds) for id_, _, seconds in answers} == {stored[f"k{number}"]}
        assert sorted(created for _, created, _ in answers) == [False] * (PROCESSES - 1) + [True]
    assert len(stored) == ROUNDS


def test_of_processes_that_replace_one_key_at_once_one_makes_the_job() -> None:
    """All others give it their payload and get that job back; the payload of one of them is stored in the end."""
    rounds = enqueue_in_processes("replace")
    stored = holders()
    for number, answers in enumerate(rounds):
        assert {id_ for id_, _, _ in answers} == {stored[f"k{number}"][0]}
        assert sorted(created for _, created, _ in answers) == [False] * (PROCESSES - 1) + [True]
        assert stored[f"k{number}"][1] in range(PROCESSES)


def test_of_processes_that_refuse_a_conflict_one_succeeds() -> None:
    """All others are told that the key is held, and by which job; no error of the database comes through."""
    rounds = enqueue_in_processes("raise")
    stored = holders()
    for number, answers in enumerate(rounds):
        made = [(id_, seconds) for id_, created, seconds in answers if created]
        refused = [(name, job_id) for name, created, job_id in answers if not created]
        assert made == [stored[f"k{number}"]]
        assert refused == [("UniqueKeyHeld", made[0][0])] * (PROCESSES - 1)


# Over REST


@pytest.fixture(scope="module")
def web(django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    """Serve the reference host; its log must be free of tracebacks."""
    server = WebServer(tmp_path_factory.mktemp("web") / "daphne.log", "dilamme_project.asgi:application")
    yield server
    server.stop()
    assert "Traceback" not in server.log.read_text()


@pytest.fixture
def clients(web: WebServer) -> Iterator[list[httpx.Client]]:
    """Return clients with a connection each."""
    with ExitStack() as closed:
        made = [httpx.Client(base_url=web.address, headers={"X-API-Key": KEY}, timeout=30) for _ in range(CLIENTS)]
        yield [closed.enter_context(client) for client in made]


def post_together(clients: list[httpx.Client], body: dict[str, Any]) -> list[httpx.Response]:
    """Return what the clients are answered that all send this body at one moment."""
    barrier = threading.Barrier(len(clients))

    def post(client: httpx.Client) -> httpx.Response:
        barrier.wait(30)
        return client.post("/api/v1/jobs", json=body)

    with ThreadPoolExecutor(len(clients)) as threads:
        return list(threads.map(post, clients))


def new_nap(key: str, **more: Any) -> dict[str, Any]:
    """Return the body of a request for a job."""
    return {"type": "nap", "payload": {"seconds": 0}, "unique_key": key, **more}


def test_of_requests_for_one_key_at_once_one_is_201(clients: list[httpx.Client]) -> None:
    """All others are 200 with the same job and `created` false."""
    for number in range(REQUESTS):
        answers = post_together(clients, new_nap(f"k{number}"))
        assert Counter(answer.status_code for answer in answers) == {201: 1, 200: CLIENTS - 1}
        told = [answer.json()["data"] for answer in answers]
        assert {data["id"] for data in told} == {holders()[f"k{number}"][0]}
        for answer, data in zip(answers, told, strict=True):
            assert data["created"] is (answer.status_code == 201)
    assert Job.objects.count() == REQUESTS


def test_of_requests_that_refuse_a_conflict_one_is_201(clients: list[httpx.Client]) -> None:
    """All others are 409, with the job that was made in `meta.job_id`."""
    for number in range(REQUESTS):
        answers = post_together(clients, new_nap(f"k{number}", on_conflict="raise"))
        assert Counter(answer.status_code for answer in answers) == {201: 1, 409: CLIENTS - 1}
        (made,) = [answer.json()["data"]["id"] for answer in answers if answer.status_code == 201]
        assert {answer.json()["meta"]["job_id"] for answer in answers if answer.status_code == 409} == {made}
        assert holders()[f"k{number}"][0] == made
    assert Job.objects.count() == REQUESTS
