"""PostgreSQL itself is stopped under web servers and workers, and started again. `DILAMME_SOAK=1`: for 30 s."""

import os
import re
import signal
import time
from pathlib import Path

import httpx

from tests.spool.server import Server
from tests.support import wait_until

OUTAGE = 30.0 if os.environ.get("DILAMME_SOAK") else 4.0  # seconds
INTERVAL = 0.02  # seconds between two requests: 50 a second


def post_steadily(client: httpx.Client, seconds: float, number: int, notes: Path) -> list[tuple[int, int, str]]:
    """Post a job 50 times a second that notes its number; return number, status and id or message of each answer."""
    answered = []
    started = time.monotonic()
    while time.monotonic() < started + seconds:
        body = {"type": "note", "payload": {"path": str(notes), "word": str(number)}}
        response = client.post("/api/v1/jobs", json=body)
        answer = response.json()
        answered.append((number, response.status_code, answer["data"]["id"] if answer["data"] else answer["message"]))
        number += 1
        time.sleep(max(0.0, started + INTERVAL * len(answered) - time.monotonic()))
    return answered


def metric(client: httpx.Client, name: str) -> float:
    """Return a metric of the web process."""
    found = re.search(rf"^dilamme_{name} (\S+)$", client.get("/metrics").text, re.MULTILINE)
    assert found, name
    return float(found[1])


def test_no_job_is_refused_lost_doubled_or_overtaken_in_an_outage(server: Server, tmp_path: Path):
    """PostgreSQL is stopped under 50 posts a second: each is accepted, made once, and run once, in order."""
    spool, notes = str(tmp_path / "spool"), tmp_path / "notes"
    client = server.web(SPOOL=spool)
    server.manage("runworker", "--concurrency", "1", LEASE=60, POLL_INTERVAL=60, SPOOL=spool)
    answered = post_steadily(client, 1.0, 0, notes)
    server.postgres.stop()
    answered += post_steadily(client, OUTAGE, len(answered), notes)
    assert client.get("/health").json()["data"]["status"] == "spooling"
    assert metric(client, "spool_jobs") > 0
    assert metric(client, "database_up") == 0
    server.postgres.ensure_postgres_running()
    answered += post_steadily(client, 1.0, len(answered), notes)
    wait_until(lambda: metric(client, "spool_jobs") == 0, within=10)
    answered += post_steadily(client, 1.0, len(answered), notes)

    statuses = [status for _, status, _ in answered]
    assert set(statuses) == {201, 202}
    assert statuses.count(202) > 20
    assert (statuses[0], statuses[-1]) == (201, 201)
    made = server.rows("select id::text, payload ->> 'word' from dilamme_job order by run_at, created_at, id")
    assert made == [(id_, str(number)) for number, _, id_ in answered]
    done = "select count(*) from dilamme_job where status = 'completed' and attempt = 1"
    wait_until(lambda: server.rows(done) == [(len(answered),)], within=60)
    assert notes.read_text().split() == [str(number) for number, _, _ in answered]
    wait_until(lambda: not list(Path(spool).iterdir()), within=30)


def test_without_a_spool_each_request_is_told(server: Server, tmp_path: Path):
    """Every post of an outage is answered 503 with the reason, and what was acknowledged is there."""
    client = server.web()
    answered = post_steadily(client, 0.5, 0, tmp_path / "notes")
    server.postgres.stop()
    refused = post_steadily(client, 1.0, len(answered), tmp_path / "notes")
    assert {(status, text) for _, status, text in refused} == {(503, "The database is away. Try again in a moment.")}
    assert client.get("/health").status_code == 503
    server.postgres.ensure_postgres_running()
    wait_until(lambda: client.get("/health").status_code == 200, within=10)
    answered += post_steadily(client, 0.5, len(answered), tmp_path / "notes")
    made = server.rows("select id::text from dilamme_job order by run_at, created_at, id")
    assert made == [(id_,) for _, status, id_ in answered if status == 201]
    assert {status for _, status, _ in answered} == {201}


def test_a_job_that_finished_in_an_outage_is_not_run_again(server: Server, tmp_path: Path):
    """Its worker is killed before it could say so: the next worker finds the outcome on disk, and reports it."""
    spool = tmp_path / "spool"
    worker = server.manage("runworker", LEASE=60, SPOOL=str(spool))
    server.enqueue("trace_and_hang", seconds=2)
    wait_until(lambda: server.rows("select word from trace") == [("attempt 1",)], within=30)
    server.postgres.stop()
    wait_until(lambda: any(file.stat().st_size > 100 for file in spool.glob("outcomes-*.spool")), within=20)
    worker.send_signal(signal.SIGKILL)
    worker.wait(10)
    server.postgres.ensure_postgres_running()
    assert server.rows("select status from dilamme_job") == [("processing",)]
    server.manage("runworker", LEASE=60, SPOOL=str(spool))
    wait_until(lambda: server.rows("select status, attempt from dilamme_job") == [("completed", 1)], within=20)
    assert server.rows("select word from trace") == [("attempt 1",)]
    assert server.rows("select kind from dilamme_jobevent") == [("completed",)]
    wait_until(lambda: list(spool.iterdir()) == [], within=10)


def test_a_worker_that_stops_in_an_outage_leaves_its_outcomes_to_the_next(server: Server, tmp_path: Path):
    """Stopped in order it says that something stayed unreported, and nothing is lost."""
    spool = tmp_path / "spool"
    worker = server.manage("runworker", LEASE=60, SPOOL=str(spool))
    server.enqueue("trace_and_hang", seconds=2)
    wait_until(lambda: server.rows("select word from trace") == [("attempt 1",)], within=30)
    server.postgres.stop()
    worker.terminate()
    assert worker.wait(30) == 1
    server.postgres.ensure_postgres_running()
    server.manage("runworker", LEASE=60, SPOOL=str(spool))
    wait_until(lambda: server.rows("select status, attempt from dilamme_job") == [("completed", 1)], within=20)


def test_an_outage_longer_than_the_lease_makes_nobody_lost(server: Server):
    """While the server was down no lease could be renewed: its workers get the length of one to come back."""
    server.manage("runworker", LEASE=2, SWEEP_INTERVAL=0.1)
    server.enqueue("trace_and_hang", seconds=8)
    wait_until(lambda: server.rows("select word from trace") == [("attempt 1",)], within=30)
    server.postgres.stop()
    time.sleep(4)
    server.postgres.ensure_postgres_running()
    wait_until(lambda: server.rows("select status, attempt from dilamme_job") == [("completed", 1)], within=20)
    assert server.rows("select kind from dilamme_jobevent") == [("completed",)]
