-- Make those of these jobs whose unique key nobody holds, and wake the workers; returns when, and which were made.
-- A key is held as the index dilamme_job_unique_key says; of two jobs with one key the first is made.
with
-- include _terms
,
made as (
  insert into dilamme_job (
    id, type, queue, status, priority, payload, scheduled_at, run_at, created_at,
    attempt, attempts_refunded, max_attempts, unmet, last_error,
    workflow_id, step, timeout, expires_at, concurrency_key, metadata,
    unique_key, unique_while_running)
  select
    new.id, terms.type, terms.queue, 'pending', terms.priority, new.payload,
    terms.run_at, terms.run_at, statement_timestamp(), 0, 0, terms.max_attempts, new.unmet, '',
    terms.workflow, terms.step, terms.timeout, terms.expires_at, terms.concurrency_key,
    terms.metadata, new.key, new.lasting
  from unnest(
    %(ids)s::uuid[], %(payloads)s::jsonb[], %(unmet)s::int[], %(numbers)s::bigint[], %(keys)s::text[],
    %(lasting)s::bool[]) new(id, payload, unmet, n, key, lasting)
  join terms on terms.n = new.n
  order by new.id
  on conflict (unique_key)
    where unique_key is not null
      and ((attempt = 0 and status = 'pending') or (status in ('pending', 'processing') and unique_while_running))
    do nothing
  returning id, queue, priority, run_at, unmet
),
wanted as (select queue, priority, run_at, unmet from made),
-- include _wake
select statement_timestamp(), array(select id from made), (select count(*) from woken)
