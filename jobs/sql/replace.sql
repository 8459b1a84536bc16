-- Give jobs that were never claimed another payload and time: debouncing by unique key. A running job is never changed.
with given as (
  select * from unnest(%(ids)s::uuid[], %(payloads)s::jsonb[], %(run_ats)s::timestamptz[]) g(id, payload, run_at)
),
changed as (
  update dilamme_job j
  set payload = given.payload, run_at = coalesce(given.run_at, statement_timestamp()),
    scheduled_at = coalesce(given.run_at, statement_timestamp())
  from given
  where j.id = given.id and j.status || '' = 'pending' and j.attempt = 0
  returning j.id, j.queue, j.priority, j.run_at, j.unmet
),
wanted as (select queue, priority, run_at, unmet from changed),
-- include _wake
select id, (select count(*) from woken) from changed
