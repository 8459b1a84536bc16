-- The graphs that these jobs belong to, up and down along every edge, up to %(limit)s edges: each edge, and whether the
-- job at its parent's and at its child's end may go.
with recursive member(id) as (
  select unnest(%(ids)s::uuid[])
  union
  select other.id
  from member
  cross join lateral (
    select parent_id as id from dilamme_jobdependency where child_id = member.id
    union all
    select child_id from dilamme_jobdependency where parent_id = member.id
  ) other
),
reached as materialized (select id from member limit %(limit)s)
select d.parent_id, d.child_id, p.over, c.over
from reached
join dilamme_jobdependency d on d.child_id = reached.id
cross join lateral (
  select status || '' in ('completed', 'failed', 'cancelled')
    and finished_at < statement_timestamp() - %(retention)s * interval '1 second' as over
  from dilamme_job where id = d.parent_id limit 1) p
cross join lateral (
  select status || '' in ('completed', 'failed', 'cancelled')
    and finished_at < statement_timestamp() - %(retention)s * interval '1 second' as over
  from dilamme_job where id = d.child_id limit 1) c
