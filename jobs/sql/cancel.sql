-- Cancel what is pending; ask what is running to stop; leave what is final alone. What is decided is decided by the row
-- that is written: the one that was locked may have been read in an older version.
with target as (
  select id, status from dilamme_job where id = any(%(ids)s::uuid[]) order by id for update
),
changed as (
  update dilamme_job j
  set
    status = case when j.status = 'pending' then 'cancelled' else j.status end,
    finished_at = case when j.status = 'pending' then clock_timestamp() else j.finished_at end,
    cancel_requested_at = coalesce(j.cancel_requested_at, clock_timestamp())
  from target t
  where j.id = t.id and j.status || '' in ('pending', 'processing')
  returning j.id, j.status, j.attempt, j.worker_id, j.started_at
),
noted as (
  insert into dilamme_jobevent (job_id, kind, attempt, worker_id, started_at, actor, error, traceback)
  select id, case when status = 'cancelled' then 'cancelled' else 'cancel_requested' end, attempt, worker_id,
    started_at, %(actor)s, '', ''
  from changed
),
told as (
  select pg_notify('dilamme_control', 'cancel:' || id) from changed where status = 'processing'
)
select t.id, t.status, c.status, (select count(*) from told)
from target t left join changed c using (id)
