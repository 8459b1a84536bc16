-- Where each level begins: the queues and priorities with work, each with the run_at of its first live row, by one
-- descent of the index dilamme_job_ready for each step. Never later than now: jobs yet to be made may be due before
-- those that are there already.
with recursive
-- include _levels
select l.queue, l.priority, (
  select date_part('epoch', least(run_at, statement_timestamp())) from dilamme_job
  where queue = l.queue and priority = l.priority and status = 'pending' and unmet = 0
  order by queue, priority, run_at, id limit 1)
from level l
where l.priority is not null
