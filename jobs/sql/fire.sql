-- Make the jobs of some slots of a series and move its marker: one statement, so that neither is ever there alone. A slot
-- that has a job already makes none.
with slot as (
  insert into dilamme_occurrence (series_id, slot, job_id)
  select %(series)s::bigint, given.slot, given.id
  from unnest(%(ids)s::uuid[], %(slots)s::timestamptz[]) given(id, slot)
  on conflict (series_id, slot) do nothing
  returning job_id, slot
),
made as (
  insert into dilamme_job (
    id, type, queue, status, priority, payload, scheduled_at, run_at, created_at,
    attempt, attempts_refunded, max_attempts, unmet, last_error, step, series_id)
  select
    slot.job_id, %(type)s::text, %(queue)s::text, 'pending', %(priority)s::float8, %(payload)s::jsonb,
    slot.slot, given.run_at, statement_timestamp(), 0, 0, %(max_attempts)s::int, 0, '', '', %(series)s::bigint
  from slot
  join unnest(%(ids)s::uuid[], %(run_ats)s::timestamptz[]) given(id, run_at) on given.id = slot.job_id
  returning id, queue, priority, run_at, unmet
),
advanced as (
  update dilamme_series
  set last_slot = coalesce(%(last_slot)s::timestamptz, last_slot), next_at = %(next_at)s::timestamptz,
    skipped = skipped + %(skipped)s::int, fault = %(fault)s::text,
    last_job_id = coalesce((select job_id from slot order by slot desc limit 1), last_job_id)
  where id = %(series)s::bigint
),
wanted as (select queue, priority, run_at, unmet from made),
-- include _wake
select array(select id from made), (select count(*) from woken)
