-- What was cancelled because of these jobs and still is, wherever it stands below them: also below a job that names
-- another root by now, since what waits for that one may not. Each job is looked up by its primary key: the limit says so
-- to a planner that would rather read the whole table for a graph of unknown size.
with recursive below(id, is_cancelled, counts) as (
  select d.child_id, c.is_cancelled, c.counts
  from dilamme_jobdependency d
  cross join lateral (
    select status || '' = 'cancelled' as is_cancelled, cancelled_because = any(%(roots)s::uuid[]) as counts
    from dilamme_job where id = d.child_id limit 1
  ) c
  where d.parent_id = any(%(roots)s::uuid[])
  union
  select d.child_id, c.is_cancelled, c.counts
  from below
  join dilamme_jobdependency d on d.parent_id = below.id
  cross join lateral (
    select status || '' = 'cancelled' as is_cancelled, cancelled_because = any(%(roots)s::uuid[]) as counts
    from dilamme_job where id = d.child_id limit 1
  ) c
  where below.is_cancelled
)
select id from below where is_cancelled and counts
