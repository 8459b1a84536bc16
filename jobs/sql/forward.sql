-- Make jobs that were accepted while the database was away. Their ids were made then, so what a broken connection has
-- stored already is not stored again, and they keep the age they have: but no clock of a host puts them in the future.
with made as (
  insert into dilamme_job (
    id, type, queue, status, priority, payload, scheduled_at, run_at, created_at,
    attempt, attempts_refunded, max_attempts, unmet, last_error)
  select
    new.id, new.type, new.queue, 'pending', new.priority, new.payload,
    coalesce(new.run_at, least(new.accepted_at, statement_timestamp())),
    coalesce(new.run_at, least(new.accepted_at, statement_timestamp())),
    least(new.accepted_at, statement_timestamp()),
    0, 0, new.max_attempts, 0, ''
  from unnest(
    %(ids)s::uuid[], %(types)s::text[], %(queues)s::text[], %(priorities)s::float8[], %(payloads)s::jsonb[],
    %(run_ats)s::timestamptz[], %(accepted_ats)s::timestamptz[], %(max_attempts)s::int[]
  ) new(id, type, queue, priority, payload, run_at, accepted_at, max_attempts)
  on conflict (id) do nothing
  returning queue, priority, run_at, unmet
),
wanted as (select queue, priority, run_at, unmet from made),
-- include _wake
select count(*) from woken
