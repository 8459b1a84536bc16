-- Tell the children of those of these jobs that have become final.
--
-- A statement of its own, after the one that ended the parents: a child committed while that one waited for the
-- parent's lock is visible only to a new snapshot. Each edge is settled once (a parent may fail, be retried and then
-- complete); children are locked in ascending id; only the writer that brings a count to zero wakes workers.
with settled as (
  update dilamme_jobdependency d
  set settled = true
  from dilamme_job p
  where d.parent_id = any(%(ids)s::uuid[]) and not d.settled
    and p.id = d.parent_id and p.id = any(%(ids)s::uuid[])
    and p.status || '' in ('completed', 'failed', 'cancelled')
    and (d.on_failure = 'run' or p.status || '' = 'completed')
  returning d.child_id
),
told as (select child_id, count(*) as n from settled group by child_id),
held as (select j.id from dilamme_job j where j.id in (select child_id from told) order by j.id for update),
released as (
  update dilamme_job j
  set unmet = j.unmet - told.n,
    run_at = case when j.unmet = told.n then greatest(j.run_at, clock_timestamp()) else j.run_at end
  from told join held on held.id = told.child_id
  where j.id = told.child_id
  returning j.id, j.queue, j.priority, j.run_at, j.unmet, j.status
),
wanted as (select queue, priority, run_at, unmet from released where status = 'pending'),
-- include _wake
select id, (select count(*) from woken) from released where unmet = 0 and status = 'pending'
