"""Several statements in one round trip: all or none, whatever goes wrong, and the connection lives on."""

from collections.abc import Iterator

import psycopg
import pytest
from django.db import connection, transaction

from jobs import enqueue
from jobs.errors import DatabaseAway
from jobs.models import Job
from jobs.pipeline import Call, Pipeline
from jobs.queries import DjangoSession, WorkerSession, connect
from tests.support import handler, wait_until

pytestmark = pytest.mark.django_db(transaction=True)

KEEP = Call("insert into kept values (%(n)s::int)", {"n": 1})
COUNT = Call("select count(*)::int from kept", {})


@pytest.fixture
def pipeline() -> Iterator[Pipeline]:
    """A connection with a table of its own."""
    with connect() as raw:
        raw.execute("create temp table kept (n int unique)")
        yield Pipeline(raw)


def test_each_statement_sees_what_those_before_it_did(pipeline: Pipeline):
    """The rows of each come back in their order; a statement without rows has none."""
    assert pipeline.run([COUNT, KEEP, COUNT]) == [[(0,)], [], [(1,)]]


def test_an_error_undoes_all_of_them_and_nothing_else(pipeline: Pipeline):
    """The one that failed is raised, and the next run works on the same connection."""
    pipeline.run([KEEP])
    with pytest.raises(psycopg.errors.UniqueViolation):
        pipeline.run([Call(KEEP.query, {"n": 2}), KEEP, COUNT])
    assert pipeline.run([COUNT]) == [[(1,)]]


def test_a_statement_that_cannot_be_prepared_can_be_corrected_by_the_world(pipeline: Pipeline):
    """What failed to be prepared is prepared again: a missing table may be there tomorrow."""
    late = Call("select n from later", {})
    for _ in range(2):
        with pytest.raises(psycopg.errors.UndefinedTable):
            pipeline.run([KEEP, late])
    pipeline.connection.execute("create temp table later (n int)")
    assert pipeline.run([late, COUNT]) == [[], [(0,)]]


def test_inside_a_transaction_it_is_part_of_it(pipeline: Pipeline):
    """A rollback takes it along."""
    with pytest.raises(ZeroDivisionError), pipeline.connection.transaction():
        assert pipeline.run([KEEP, COUNT]) == [[], [(1,)]]
        raise ZeroDivisionError
    assert pipeline.run([COUNT]) == [[(0,)]]


def test_answers_larger_than_the_sockets_buffers_do_not_block(pipeline: Pipeline):
    """The server answers while we still send: neither waits for the other for ever."""
    big = Call("select repeat(%(text)s::text, 4)", {"text": "x" * 3_000_000})
    assert [len(rows[0][0]) for rows in pipeline.run([big] * 6)] == [12_000_000] * 6


def test_a_second_transaction_is_sent_before_the_first_is_answered(pipeline: Pipeline):
    """It waits its turn at the server, not ours; each is answered with its own rows."""
    slow = pipeline.send([Call("select 1 from pg_sleep(0.3)", {}), KEEP])
    quick = pipeline.send([COUNT])
    assert not pipeline.is_answered(quick, 0.001)
    assert pipeline.rows_of(quick) == [[(1,)]]
    assert pipeline.is_answered(slow, 0)
    assert pipeline.rows_of(slow) == [[(1,)], []]


def test_an_error_in_the_first_leaves_the_second_alone(pipeline: Pipeline):
    """They are two transactions: one is undone, the other stands."""
    pipeline.run([KEEP, COUNT])
    broken = pipeline.send([Call(KEEP.query, {"n": 2}), KEEP])
    fine = pipeline.send([Call(KEEP.query, {"n": 3}), COUNT])
    with pytest.raises(psycopg.errors.UniqueViolation):
        pipeline.rows_of(broken)
    assert pipeline.rows_of(fine) == [[], [(2,)]]


def test_what_is_run_while_something_is_under_way_comes_after_it(pipeline: Pipeline):
    """Its rows are its own, and those of the first are kept until they are asked for."""
    first = pipeline.send([KEEP])
    assert pipeline.run([COUNT]) == [[(1,)]]
    assert pipeline.rows_of(first) == [[]]


def test_a_transaction_waits_for_what_is_under_way():
    """The driver may use the connection in its own way as soon as nothing is on its way."""
    session = WorkerSession()
    first = session.send([("ping", {})])
    with session.transaction():
        assert session.fetch("ping") == [(1,)]
    assert session.rows_of(first) == [[(1,)]]
    session.close()


def test_whatever_is_under_way_is_lost_with_the_connection():
    """Each of them says so, and only what is sent afterwards is answered."""
    session = WorkerSession()
    (((pid,),),) = session._ready().run([Call("select pg_backend_pid()", {})])
    with connection.cursor() as cursor:
        cursor.execute("select pg_terminate_backend(%s)", [pid])
    wait_until(lambda: not Job.objects.raw("select pid as id from pg_stat_activity where pid = %s", [pid]))
    with pytest.raises(DatabaseAway):
        session.rows_of(session.send([("ping", {})]))
    first = session.send([("ping", {})])
    second = session.send([("ping", {})])
    session.close()
    for lost in (first, second):
        with pytest.raises(DatabaseAway):
            session.is_answered(lost, 1)
    assert session.fetch("ping") == [(1,)]
    session.close()


def test_a_lost_connection_is_told_apart_from_an_error():
    """The session raises DatabaseAway, and connects again by itself."""
    session = WorkerSession()
    (((pid,),),) = session._ready().run([Call("select pg_backend_pid()", {})])
    with connection.cursor() as cursor:
        cursor.execute("select pg_terminate_backend(%s)", [pid])
    with pytest.raises(DatabaseAway):
        session.fetch("ping")
    assert session.fetch("ping") == [(1,)]
    session.close()


def test_django_connections_keep_their_own_transaction():
    """Our statements on Django's connection commit and roll back with everything else there."""
    with handler(lambda: None, name="thing"):
        with pytest.raises(ZeroDivisionError), transaction.atomic():
            enqueue("thing")
            assert Job.objects.count() == 1
            raise ZeroDivisionError
        assert Job.objects.count() == 0
        enqueue("thing")
        assert Job.objects.count() == 1


def test_whoever_watches_django_sees_our_statements(django_assert_num_queries):
    """Query counters and execute wrappers of the host are not passed by."""
    with handler(lambda: None, name="thing"), django_assert_num_queries(1):
        enqueue("thing")


def test_behind_a_transaction_pooler_nothing_is_prepared():
    """DISABLE_SERVER_SIDE_CURSORS is Django's word for one."""
    connection.settings_dict["DISABLE_SERVER_SIDE_CURSORS"] = True
    try:
        with handler(lambda: None, name="thing"):
            connection.close()
            enqueue("thing")
            with connection.cursor() as cursor:
                cursor.execute("select count(*) from pg_prepared_statements")
                assert cursor.fetchone() == (0,)
    finally:
        connection.settings_dict["DISABLE_SERVER_SIDE_CURSORS"] = False
    assert DjangoSession().fetch("ping") == [(1,)]
