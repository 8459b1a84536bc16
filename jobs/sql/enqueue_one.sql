-- Make one job that waits for no parent: what most callers do, without the arrays of enqueue.sql, and without a CTE, which
-- would cost as much as the row. The workers are woken, unless they will find it by their own look ahead, or all of them
-- have older jobs of its queue and priority waiting: commits that notify wait for each other. That holds for a statement
-- that commits by itself; with a longer transaction the workers may be idle by its end.
insert into dilamme_job (
  id, type, queue, status, priority, payload, scheduled_at, run_at, created_at,
  attempt, attempts_refunded, max_attempts, unmet, last_error)
values (
  %(id)s::uuid, %(type)s::text, %(queue)s::text, 'pending', %(priority)s::float8, %(payload)s::jsonb,
  coalesce(%(run_at)s::timestamptz, statement_timestamp()), coalesce(%(run_at)s::timestamptz, statement_timestamp()),
  statement_timestamp(), 0, 0, %(max_attempts)s::int, 0, '')
returning created_at, case when run_at < statement_timestamp() + %(horizon)s * interval '1 second'
  and not (%(commits)s::bool and %(run_at)s::timestamptz is null
    and coalesce((select bool_and(queue || ' ' || priority = any (w.saturated)) from dilamme_worker w), false)) then
-- include _notify
end
