-- Cancel what waits for those of these jobs that failed or were cancelled, what waits for that, and so on: up to
-- %(room)s jobs. The caller holds these jobs, so none of them can be retried meanwhile.
--
-- A statement of its own, after the one that ended them, for the reason given in settle.sql. The limit stops the
-- recursion. What is not reached, and what may wait for the jobs cancelled here in another way, is written down in
-- dilamme_unsettled in the same transaction: see jobs/lifecycle/cascade.py.
with recursive doomed(id, root) as (
  select d.child_id, coalesce(p.cancelled_because, p.id)
  from dilamme_job p
  join dilamme_jobdependency d on d.parent_id = p.id
  join dilamme_job c on c.id = d.child_id
  where p.id = any(%(ids)s::uuid[]) and p.status || '' in ('failed', 'cancelled')
    and d.on_failure = 'cancel' and not d.settled and c.status || '' = 'pending'
  union
  select d.child_id, doomed.root
  from doomed
  join dilamme_jobdependency d on d.parent_id = doomed.id
  join dilamme_job c on c.id = d.child_id
  where d.on_failure = 'cancel' and not d.settled and c.status || '' = 'pending'
),
reached as materialized (select id, root from doomed limit %(room)s),
held as (
  select j.id from dilamme_job j
  where j.id in (select id from reached) and j.status || '' = 'pending'
  order by j.id for update
),
-- A job may be reached from two that failed; it names the older one.
chosen as materialized (select id, (min(root::text))::uuid as root from reached group by id),
changed as (
  update dilamme_job j
  set status = 'cancelled', finished_at = clock_timestamp(), cancelled_because = chosen.root
  from held join chosen using (id)
  where j.id = held.id and j.status || '' = 'pending'
  returning j.id, j.type, j.queue, j.attempt, j.cancelled_because
),
noted as (
  insert into dilamme_jobevent (job_id, kind, attempt, actor, error, traceback)
  select id, 'cancelled', attempt, '', 'Cancelled because of what it waits for: job ' || cancelled_because || '.', ''
  from changed
),
left_over as (
  insert into dilamme_unsettled (job_id)
  select id from changed
  union
  select id from unnest(%(ids)s::uuid[]) given(id) where (select count(*) from reached) = %(room)s
  on conflict do nothing
)
select id, type, queue, attempt, cancelled_because from changed
