"""The systems that are compared: what is known of each without its being installed.

How a system is configured stands in its adapter; why, in the sentence here that the report prints.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Peer:
    """One system. Its adapter is `bench/peers/<name>.py`, its environment `requirements/<name>.txt`, of npm `.json`."""

    name: str
    title: str
    distribution: str  # whose version is reported
    how: str  # its configuration, in one line
    python: tuple[int, int] = (3, 11)  # the oldest it runs on
    programs: tuple[str, ...] = ()  # programs of the operating system that it needs
    ours: bool = False  # runs in the environment that runs the comparison
    npm: bool = False  # is of npm's packages; measured from the environment that runs the comparison
    bulk: bool = True  # has a call that enqueues many
    schedules: bool = True  # runs jobs at a time
    most: int = 1_000_000  # jobs to drain at most, where more would take minutes
    poll: float = 0.0  # seconds between two looks of an idle worker, where nothing tells it of a new job


PEERS = {
    peer.name: peer
    for peer in (
        Peer(
            "dilamme",
            "Dilamme",
            "dilamme",
            "every setting at its default: 10 threads, claims of up to 400",
            ours=True,
        ),
        Peer(
            "pgqueuer",
            "pgqueuer",
            "pgqueuer",
            "asyncpg and uvloop, an async handler, batches of 500 (10 by default), its vacuum settings applied",
        ),
        Peer(
            "procrastinate",
            "procrastinate",
            "procrastinate",
            "an async handler, 10 at a time, LISTEN/NOTIFY, for jobs that fall due a look every 0.1 s (5 s by default)",
            most=10_000,
        ),
        Peer(
            "awa",
            "awa",
            "awa-pg",
            "queue storage, an async handler, 500 at a time, no time limit, promotes every 0.1 s (0.25 s by default)",
        ),
        Peer(
            "chancy",
            "Chancy",
            "chancy",
            "async executor, 300 at a time, eager polling, LISTEN/NOTIFY, outcomes written every 0.1 s (1 s), "
            "for jobs that fall due a look every second, which is its least",
        ),
        Peer(
            "django_ox",
            "django-ox",
            "django-ox",
            "4 threads, persistent connections, a look every 0.1 s (1 s by default)",
            python=(3, 12),
            most=5_000,
            poll=0.1,
        ),
        Peer(
            "dj_queue",
            "dj-queue",
            "dj-queue",
            "8 threads, claims of up to 64, persistent connections, LISTEN/NOTIFY, for jobs that fall due a look every "
            "0.1 s (1 s by default); its supervisor and dispatcher are further processes",
            python=(3, 12),
            most=10_000,
        ),
        Peer(
            "django_tasks_db",
            "django-tasks-db",
            "django-tasks-db",
            "persistent connections, a look every 0.1 s (1 s by default); one task at a time is all it does",
            python=(3, 12),
            bulk=False,
            most=3_000,
            poll=0.1,
        ),
        Peer(
            "graphile_worker",
            "graphile-worker",
            "graphile-worker",
            "24 at a time, a local queue of 500, completions batched without delay, bulk by its SQL function, "
            "LISTEN/NOTIFY, for jobs that fall due a look every 0.1 s (2 s by default); it deletes what is done",
            programs=("node", "npm"),
            npm=True,
        ),
        Peer(
            "celery",
            "Celery with Redis",
            "celery",
            "solo pool, 128 messages ahead, no results, acknowledged before they run, Redis without persistence: "
            "neither its enqueueing nor its work is durable",
            programs=("redis-server",),
            bulk=False,
        ),
    )
}
