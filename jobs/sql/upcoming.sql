-- How many seconds until the next jobs fall due, within a horizon: what the worker puts on its timing wheel.
select date_part('epoch', h.run_at - clock_timestamp()) as seconds
from unnest(%(queues)s::text[], %(priorities)s::float8[]) l(queue, priority)
cross join lateral (
  select run_at from dilamme_job
  where queue = l.queue and priority = l.priority and status = 'pending' and unmet = 0
    and run_at > statement_timestamp() and run_at < statement_timestamp() + %(horizon)s * interval '1 second'
  order by run_at limit %(room)s
) h
order by h.run_at limit %(room)s
