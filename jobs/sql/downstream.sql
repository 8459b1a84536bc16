-- What was cancelled because of these jobs and still is, wherever it stands below them.
with recursive below(id) as (
  select d.child_id from dilamme_jobdependency d where d.parent_id = any(%(roots)s::uuid[])
  union
  select d.child_id
  from below
  join dilamme_job j on j.id = below.id
  join dilamme_jobdependency d on d.parent_id = j.id
  where j.status || '' = 'cancelled' and j.cancelled_because = any(%(roots)s::uuid[])
)
select j.id from below join dilamme_job j on j.id = below.id
where j.status || '' = 'cancelled' and j.cancelled_because = any(%(roots)s::uuid[])
