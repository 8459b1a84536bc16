-- Make jobs, and wake the workers: one statement, one round trip. What jobs have in common comes once, by number.
with
-- include _terms
,
made as (
  insert into dilamme_job (
    id, type, queue, status, priority, payload, scheduled_at, run_at, created_at,
    attempt, attempts_refunded, max_attempts, unmet, last_error,
    workflow_id, step, timeout, expires_at, concurrency_key, metadata)
  select
    new.id, terms.type, terms.queue, 'pending', terms.priority, new.payload,
    terms.run_at, terms.run_at, statement_timestamp(), 0, 0, terms.max_attempts, new.unmet, '',
    terms.workflow, terms.step, terms.timeout, terms.expires_at, terms.concurrency_key,
    terms.metadata
  from unnest(%(ids)s::uuid[], %(payloads)s::jsonb[], %(unmet)s::int[], %(numbers)s::bigint[]) new(id, payload, unmet, n)
  join terms on terms.n = new.n
),
wanted as (select queue, priority, run_at, 0 as unmet from terms where wakes),
-- include _wake
select statement_timestamp(), count(*) from woken
