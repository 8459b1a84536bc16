-- What holds jobs back now: queues that are paused or limited, types that are paused; and in how many seconds a pause is
-- over by itself. Small tables, which only what is held back has rows in.
select 'queue', name,
  paused and (paused_until is null or paused_until > statement_timestamp()),
  concurrency is not null or concurrency_per_key is not null or rate is not null,
  case when paused then date_part('epoch', paused_until - statement_timestamp()) end
from dilamme_queue
where paused or concurrency is not null or concurrency_per_key is not null or rate is not null
union all
select 'type', type, true, false, date_part('epoch', until - statement_timestamp())
from dilamme_pausedtype
where until is null or until > statement_timestamp()
