-- Make jobs, and wake the workers: one statement, one round trip. What jobs have in common comes once, by number.
with terms as materialized (
  select n, type, queue, priority, coalesce(run_at, statement_timestamp()) as run_at, max_attempts, unmet
  from unnest(
    %(types)s::text[], %(queues)s::text[], %(priorities)s::float8[], %(run_ats)s::timestamptz[],
    %(max_attempts)s::int[], %(unmet)s::int[]
  ) with ordinality t(type, queue, priority, run_at, max_attempts, unmet, n)
),
made as (
  insert into dilamme_job (
    id, type, queue, status, priority, payload, scheduled_at, run_at, created_at,
    attempt, attempts_refunded, max_attempts, unmet, last_error)
  select
    new.id, terms.type, terms.queue, 'pending', terms.priority, new.payload,
    terms.run_at, terms.run_at, statement_timestamp(), 0, 0, terms.max_attempts, terms.unmet, ''
  from unnest(%(ids)s::uuid[], %(payloads)s::jsonb[], %(numbers)s::bigint[]) new(id, payload, n)
  join terms on terms.n = new.n
),
wanted as (select queue, priority, run_at, unmet from terms),
-- include _wake
select statement_timestamp(), count(*) from woken
