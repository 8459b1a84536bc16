-- Give dead letters and cancelled jobs a new budget of attempts. The attempt number goes on: it is part of the fence.
with target as (
  select id, status from dilamme_job where id = any(%(ids)s::uuid[]) order by id for update
),
changed as (
  update dilamme_job j
  set status = 'pending', finished_at = null, run_at = clock_timestamp(), attempts_refunded = j.attempt,
    cancel_requested_at = null
  from target t
  where j.id = t.id and t.status in ('failed', 'cancelled')
  returning j.id, j.attempt, j.queue, j.priority, j.run_at, j.unmet
),
noted as (
  insert into dilamme_jobevent (job_id, kind, attempt, actor, error, traceback)
  select id, 'retried', attempt, %(actor)s, '', '' from changed
),
wanted as (select queue, priority, run_at, unmet from changed),
-- include _wake
select t.id, t.status, case when c.id is not null then 'pending' end, (select count(*) from woken)
from target t left join changed c using (id)
