"""graphile-worker, on a Node.js of its own: what enqueues and what works is `graphile_worker.mjs`, told from here.

One client is started and told by lines of JSON what to enqueue, so a line and its answer are part of each call: a
tenth of a millisecond. Jobs that are done leave its table without a trace; what is no longer there counts as done.
"""

import json
import subprocess
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path

from bench.peers import install
from bench.peers.adapter import Counting

_SCRIPT = Path(__file__).with_suffix(".mjs")


class GraphileWorker(Counting):
    """The adapter."""

    waiting_sql = "select count(*) from graphile_worker.jobs"

    def setup(self) -> None:
        """Start the client, and make the tables."""
        self._enqueued = 0
        self._client = subprocess.Popen(_command("client"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._tell("migrate")

    def enqueue_each(self, numbers: Iterable[int]) -> float:
        """Enqueue one by one; each call is a transaction. The answer of the client takes a while to come."""
        return self._tell("each", numbers)

    def enqueue_bulk(self, numbers: Sequence[int]) -> None:
        """Enqueue all in one statement."""
        self._tell("bulk", numbers)

    def enqueue_at(self, number: int, due: datetime) -> None:
        """Enqueue for a time."""
        self._tell("at", [number], due.isoformat())

    def _tell(self, order: str, numbers: Iterable[int] = (), due: str | None = None) -> float:
        """Have the client carry out an order; returns when it had. Raises `ChildProcessError` if it ends instead."""
        listed = list(numbers)
        print(json.dumps({"do": order, "numbers": listed, "due": due}), file=self._client.stdin, flush=True)
        answer = self._client.stdout.readline()  # type: ignore[union-attr]  # a pipe
        if not answer:
            raise ChildProcessError("the client ended, and says why on stderr")
        self._enqueued += len(listed)
        return float(answer)

    def workers(self, processes: int) -> list[list[str]]:
        """Return the command of each process."""
        return [_command("work")] * processes

    def finished(self) -> int:
        """Return how many jobs are no longer there."""
        return self._enqueued - self.waiting()

    def close(self) -> None:
        """End the client, and leave the database."""
        self._client.communicate()
        super().close()


def _command(role: str) -> list[str]:
    return [str(install.node("graphile_worker")), str(_SCRIPT), role]


ADAPTER = GraphileWorker
