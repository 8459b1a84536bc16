-- How many seconds until the next jobs fall due, within a horizon: what the worker puts on its timing wheel.
-- The same walk over queues and priorities as in claim.sql.
with recursive
-- include _levels
select extract(epoch from h.run_at - clock_timestamp())::float8 as seconds
from level l
cross join lateral (
  select run_at from dilamme_job
  where queue = l.queue and priority = l.priority and status = 'pending' and unmet = 0
    and run_at > statement_timestamp() and run_at < statement_timestamp() + %(horizon)s * interval '1 second'
  order by run_at limit %(room)s
) h
order by h.run_at limit %(room)s
