-- Keep what running handlers say of their progress, and what they log. Behind the attempt, so that a run that was lost says
-- nothing about the next one; it may have ended by now, for these are written a little later.
with told as (
  update dilamme_job j
  set progress = (%(progress)s::jsonb[])[array_position(%(ids)s::uuid[], j.id)]
  where j.id = any(%(ids)s::uuid[])
    and j.attempt = (%(attempts)s::int[])[array_position(%(ids)s::uuid[], j.id)]
),
noted as (
  insert into dilamme_jobevent (job_id, kind, attempt, worker_id, at, actor, error, traceback)
  select line.job_id, 'logged', line.attempt, %(worker)s, statement_timestamp() - line.age * interval '1 second', '',
    line.text, ''
  from unnest(%(of)s::uuid[], %(in)s::int[], %(ages)s::float8[], %(lines)s::text[])
    with ordinality line(job_id, attempt, age, text, n)
  order by line.n
)
select count(*) from unnest(%(ids)s::uuid[])
