-- Make one job that waits for no parent, and wake the workers: what most callers do, without the arrays of enqueue.sql.
with made as (
  insert into dilamme_job (
    id, type, queue, status, priority, payload, scheduled_at, run_at, created_at,
    attempt, attempts_refunded, max_attempts, unmet, last_error)
  values (
    %(id)s::uuid, %(type)s::text, %(queue)s::text, 'pending', %(priority)s::float8, %(payload)s::jsonb,
    coalesce(%(run_at)s::timestamptz, statement_timestamp()), coalesce(%(run_at)s::timestamptz, statement_timestamp()),
    statement_timestamp(), 0, 0, %(max_attempts)s::int, 0, '')
),
wanted as (
  select %(queue)s::text as queue, %(priority)s::float8 as priority, 0 as unmet,
    coalesce(%(run_at)s::timestamptz, statement_timestamp()) as run_at
),
-- include _wake
select statement_timestamp(), count(*) from woken
