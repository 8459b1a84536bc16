-- End runs that did not succeed: retry, dead letter, hand-back or cancellation, each with its line of history.
--
-- Fence and access path as in complete.sql. A job whose cancellation was asked for is never given another attempt:
-- what would have gone back to pending is cancelled instead.
with ended as (
  update dilamme_job
  set
    status = case
      when cancel_requested_at is not null and (%(statuses)s::text[])[array_position(%(ids)s::uuid[], id)] = 'pending'
      then 'cancelled' else (%(statuses)s::text[])[array_position(%(ids)s::uuid[], id)] end,
    finished_at = case
      when cancel_requested_at is null and (%(statuses)s::text[])[array_position(%(ids)s::uuid[], id)] = 'pending'
      then null else clock_timestamp() end,
    run_at = case
      when (%(keep_run_at)s::bool[])[array_position(%(ids)s::uuid[], id)] then run_at
      else clock_timestamp()
        + (%(delays)s::float8[])[array_position(%(ids)s::uuid[], id)] * interval '1 second' end,
    attempts_refunded = attempts_refunded + (%(refunds)s::int[])[array_position(%(ids)s::uuid[], id)],
    last_error = coalesce((%(errors)s::text[])[array_position(%(ids)s::uuid[], id)], last_error),
    worker_id = null
  where id = any(%(ids)s::uuid[])
    and status || '' = 'processing'
    and worker_id is not distinct from %(worker)s
    and attempt = (%(attempts)s::int[])[array_position(%(ids)s::uuid[], id)]
  returning id, attempt, status, queue, priority, run_at, started_at
),
noted as (
  insert into dilamme_jobevent (job_id, kind, attempt, worker_id, started_at, duration, actor, error, traceback)
  select
    id,
    case
      when status = 'cancelled' and (%(statuses)s::text[])[array_position(%(ids)s::uuid[], id)] = 'pending'
      then 'cancelled' else (%(kinds)s::text[])[array_position(%(ids)s::uuid[], id)] end,
    attempt, %(worker)s, started_at,
    (%(durations)s::float8[])[array_position(%(ids)s::uuid[], id)], '',
    (%(notes)s::text[])[array_position(%(ids)s::uuid[], id)],
    (%(tracebacks)s::text[])[array_position(%(ids)s::uuid[], id)]
  from ended
),
-- A hand-back may be taken by another worker at once.
wanted as (
  select queue, priority, run_at, 0 as unmet from ended where status = 'pending' and run_at <= clock_timestamp()
),
-- include _wake
select id, status, (select count(*) from woken) from ended
