-- What these jobs wait for, and how that stands; the parents are held by then.
select d.child_id, d.parent_id, d.on_failure, p.status, p.cancelled_because
from dilamme_jobdependency d
cross join lateral (select status, cancelled_because from dilamme_job where id = d.parent_id limit 1) p
where d.child_id = any(%(ids)s::uuid[])
order by d.child_id, d.parent_id
