"""Runs prepared statements ahead of their answers: several cost one round trip, and are one transaction.

In libpq's pipeline mode whatever is sent before a sync is one implicit transaction, each statement with a snapshot of
its own. What is sent after it may follow before the first is answered: the server turns to it without a pause, while
the client is still busy with what it got. The driver's own pipeline waits between the statements that it sends; every
wait hands the interpreter to the threads that run jobs, which keep it for milliseconds while the server has nothing to
do. Here the only wait is the one for the answers. Source: the PostgreSQL manual, "Pipeline Mode" and "Extended Query".
"""

import functools
import re
import select
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import psycopg
from psycopg.adapt import Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ConnStatus, ExecStatus, Format

from jobs.literals import text_of

_PLACEHOLDER = re.compile(r"%\((\w+)\)s")

Row = tuple[Any, ...]


class Call(NamedTuple):
    """A statement and its parameters, by name."""

    query: str
    parameters: Mapping[str, Any]


class Reply:
    """What is answered to the statements of one transaction, once it is: see `Pipeline.rows_of`."""

    __slots__ = ("expected", "pipeline", "results")

    def __init__(self, pipeline: "Pipeline", expected: Sequence[str | None], results: list[Any] | None = None) -> None:
        self.pipeline = pipeline
        self.expected = expected  # what is prepared by its query, and None where rows are the answer
        self.results = results  # None until all of them have come


class _OrClosed:
    """Closes the connection if what is done with it fails half-way."""

    __slots__ = ("_pipeline",)

    def __init__(self, pipeline: "Pipeline") -> None:
        self._pipeline = pipeline

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            self._pipeline.close()


class Pipeline:
    """One connection, used by one thread at a time. Statements are prepared when they are first used."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection
        self._pgconn = connection.pgconn
        self._loaders = Transformer(connection)
        self._names: dict[str, bytes] = {}
        self._prepared = 0  # names are never used again
        self._unanswered: deque[Reply] = deque()
        self._or_closed = _OrClosed(self)

    def close(self) -> None:
        """Close the connection; what is still on its way belongs to nobody."""
        self._unanswered.clear()
        self.connection.close()

    def run(self, calls: Sequence[Call], meanwhile: Callable[[], object] | None = None) -> list[list[Row]]:
        """Run the statements in one transaction, or in the one that is open, and return the rows of each.

        `meanwhile` is called while the server is at work. Raises psycopg's errors, and then nothing of it has happened;
        the connection is broken if it says so itself.
        """
        reply = self.send(calls)
        if meanwhile is not None:
            with self._or_closed:
                meanwhile()
        return self.rows_of(reply)

    def send(self, calls: Sequence[Call]) -> Reply:
        """Send statements that are a transaction of their own, behind those that were sent before."""
        if not calls:
            return Reply(self, [], [])
        with self._or_closed:
            if not self._unanswered:
                self._pgconn.enter_pipeline_mode()
            reply = Reply(self, [part for call in calls for part in self._send(call)])
            self._unanswered.append(reply)
            self._pgconn.pipeline_sync()
            self._flush()
        return reply

    def is_answered(self, reply: Reply, timeout: float) -> bool:
        """Wait up to `timeout` seconds for the answer; what was sent before is answered before."""
        with self._or_closed:
            while reply.results is None:
                if self._pgconn.is_busy() and not self._wait(select.POLLIN, timeout):
                    return False
                self._pgconn.consume_input()
                if not self._pgconn.is_busy():
                    self._read_one()
        return True

    def rows_of(self, reply: Reply) -> list[list[Row]]:
        """Return the rows of each statement, or raise what `run` would; waits for the answer."""
        with self._or_closed:
            while reply.results is None:
                self._read_one()
        self._check(reply.expected, reply.results)
        answers = zip(reply.results, reply.expected, strict=True)
        return [self._rows(result) for result, prepared in answers if prepared is None]

    def settle(self) -> None:
        """Wait for every answer, so that the connection may be used in other ways."""
        while self._unanswered:
            with self._or_closed:
                self._read_one()

    def _read_one(self) -> None:
        """Read the answer to what was sent first."""
        if not self._unanswered:
            raise psycopg.OperationalError("the connection is lost")
        reply = self._unanswered[0]
        results = [self._next_results() for _ in reply.expected]
        self._next_results()  # the sync
        reply.results = results
        self._unanswered.popleft()
        if not self._unanswered:
            self._pgconn.exit_pipeline_mode()

    def _check(self, expected: Sequence[str | None], results: Sequence[Any]) -> None:
        """Raise the error that there was; what it kept from being prepared is to be prepared again."""
        for prepared, result in zip(expected, results, strict=True):
            if prepared is not None and result.status != ExecStatus.COMMAND_OK:
                self._names.pop(prepared, None)
        for result in results:
            if result.status == ExecStatus.FATAL_ERROR:
                raise error_from_result(result)

    def _send(self, call: Call) -> list[str | None]:
        """Send one statement; return what will be answered: a statement that is prepared, None for rows."""
        text, names = _numbered(call.query)
        answers: list[str | None] = [None]
        if (name := self._names.get(call.query)) is None:
            self._prepared += 1
            name = self._names[call.query] = b"dilamme_%d" % self._prepared
            self._pgconn.send_prepare(name, text)
            answers = [call.query, None]
        values = [text_of(call.parameters[parameter]) for parameter in names]
        self._pgconn.send_query_prepared(name, values, result_format=Format.BINARY)
        return answers

    def _flush(self) -> None:
        """Hand everything to the kernel, reading meanwhile what the server answers already."""
        while self._pgconn.flush():
            self._wait(select.POLLIN | select.POLLOUT)
            self._pgconn.consume_input()

    def _next_results(self) -> Any:
        """Return the next result; each but a sync is followed by None."""
        result = self._wait_for_result()
        if result is not None and result.status != ExecStatus.PIPELINE_SYNC:
            self._wait_for_result()
        return result

    def _wait_for_result(self) -> Any:
        while self._pgconn.is_busy():
            self._wait(select.POLLIN)
            self._pgconn.consume_input()
        return self._pgconn.get_result()

    def _wait(self, events: int, timeout: float | None = None) -> bool:
        if self._pgconn.status != ConnStatus.OK:
            raise psycopg.OperationalError("the connection is lost")
        poll = select.poll()
        poll.register(self._pgconn.socket, events)
        return bool(poll.poll(None if timeout is None else timeout * 1000))

    def _rows(self, result: Any) -> list[Row]:
        self._loaders.set_pgresult(result, format=Format.BINARY)
        return self._loaders.load_rows(0, result.ntuples, tuple) if result.ntuples else []


@functools.cache
def _numbered(query: str) -> tuple[bytes, tuple[str, ...]]:
    """Return a statement with `$1` and so on instead of `%(name)s`, and the names in that order."""
    names = tuple(dict.fromkeys(_PLACEHOLDER.findall(query)))
    return _PLACEHOLDER.sub(lambda found: f"${names.index(found[1]) + 1}", query).encode(), names
