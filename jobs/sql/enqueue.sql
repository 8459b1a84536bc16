-- Make jobs that wait for no parent, and wake the workers: one statement, one round trip.
with made as (
  insert into dilamme_job (
    id, type, queue, status, priority, payload, scheduled_at, run_at, created_at,
    attempt, attempts_refunded, max_attempts, unmet, last_error)
  select
    new.id, new.type, new.queue, 'pending', new.priority, new.payload,
    coalesce(new.run_at, statement_timestamp()), coalesce(new.run_at, statement_timestamp()), statement_timestamp(),
    0, 0, new.max_attempts, new.unmet, ''
  from unnest(
    %(ids)s::uuid[], %(types)s::text[], %(queues)s::text[], %(priorities)s::float8[], %(payloads)s::jsonb[],
    %(run_ats)s::timestamptz[], %(max_attempts)s::int[], %(unmet)s::int[]
  ) new(id, type, queue, priority, payload, run_at, max_attempts, unmet)
  returning id, queue, run_at, created_at, unmet
),
-- include _wake
select made.id, made.created_at, made.run_at, (select count(*) from woken) from made
