-- A fragment, included by the statements that walk the ranges of the index dilamme_job_ready.
-- The queues to serve: those asked for, or every queue with work, by one index descent each.
served(queue) as (
  select q from unnest(%(queues)s::text[]) q
  union all
  (select queue from dilamme_job
   where %(queues)s::text[] is null and status = 'pending' and unmet = 0 order by queue limit 1)
  union all
  select (select j.queue from dilamme_job j
          where j.status = 'pending' and j.unmet = 0 and j.queue > served.queue order by j.queue limit 1)
  from served where %(queues)s::text[] is null and served.queue is not null
),
-- The priorities present in each: again one index descent each.
level(queue, priority) as (
  select s.queue, (select j.priority from dilamme_job j
                   where j.queue = s.queue and j.status = 'pending' and j.unmet = 0
                   order by j.queue, j.priority limit 1)
  from served s where s.queue is not null
  union all
  select l.queue, (select j.priority from dilamme_job j
                   where j.queue = l.queue and j.priority > l.priority and j.status = 'pending' and j.unmet = 0
                   order by j.queue, j.priority limit 1)
  from level l where l.priority is not null
)
