-- The series that are due, or whose last run may have ended, held for the tick that deals with them. Only those whose
-- type this process knows: the others are left to workers that do.
select s.id, s.name, s.type, s.payload, s.queue, s.priority, s.max_attempts, s.interval, s.cron, s.zone, s.mode,
  s.catch_up, s.catch_up_limit, s.overlap, s.jitter, s.starts_at, s.ends_at, s.last_slot, s.next_at, j.status,
  j.finished_at, statement_timestamp()
from dilamme_series s
left join lateral (select status, finished_at from dilamme_job where id = s.last_job_id limit 1) j on true
where not s.paused and s.fault = '' and s.type = any(%(types)s::text[])
  and (s.ends_at is null or s.ends_at > statement_timestamp() or s.next_at is not null)
  and (s.next_at <= statement_timestamp()
    or (s.next_at is null and s.mode = 'after' and coalesce(j.status, '') not in ('pending', 'processing')))
order by s.next_at, s.id
limit %(room)s
for update of s skip locked
