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
),
-- Of them the page that was asked for; the others are not counted.
page as (
  select name from names
  where (%(queues)s::text[] is null or name = any(%(queues)s::text[]))
    and (%(after)s::text is null or name > %(after)s::text)
  order by name limit %(room)s
)
select p.name,
  (select count(*) from dilamme_job j where j.queue = p.name and j.status = 'pending' and j.unmet = 0),
  (select count(*) from dilamme_job j where j.queue = p.name and j.status = 'processing')
from page p
order by p.name
