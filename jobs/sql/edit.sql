-- Change what a pending job is to do, when, where and how urgently; what is null stays as it is.
with target as (
  select id, status from dilamme_job where id = %(id)s::uuid for update
),
changed as (
  update dilamme_job j
  set payload = coalesce(%(payload)s::jsonb, j.payload), queue = coalesce(%(queue)s::text, j.queue),
    priority = coalesce(%(priority)s::float8, j.priority), run_at = coalesce(%(run_at)s::timestamptz, j.run_at),
    scheduled_at = coalesce(%(run_at)s::timestamptz, j.scheduled_at)
  from target
  where j.id = target.id and j.status || '' = 'pending'
  returning j.id, j.attempt, j.queue, j.priority, j.run_at, j.unmet
),
noted as (
  insert into dilamme_jobevent (job_id, kind, attempt, actor, error, traceback)
  select id, 'edited', attempt, %(actor)s, %(note)s, '' from changed
),
wanted as (select queue, priority, run_at, unmet from changed),
-- include _wake
select target.status, (select count(*) from changed), (select count(*) from woken) from target
