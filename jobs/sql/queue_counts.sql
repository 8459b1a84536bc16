-- The queues with work that waits for a worker or its time, by one index descent each, and how many jobs of each wait and
-- run. Counting reads the live jobs of the queue and no history.
with recursive
-- include _levels
,
names as (
  select queue as name from served where queue is not null
  union
  select name from dilamme_queue
  union
  select queue from dilamme_job where status = 'processing'
)
select n.name,
  (select count(*) from dilamme_job j where j.queue = n.name and j.status = 'pending' and j.unmet = 0),
  (select count(*) from dilamme_job j where j.queue = n.name and j.status = 'processing')
from names n
where %(queues)s::text[] is null or n.name = any(%(queues)s::text[])
order by n.name
