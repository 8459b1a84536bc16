-- Cancel jobs that were not started in time. One that waits for its next attempt has been.
with late as (
  select id from dilamme_job
  where status = 'pending' and expires_at is not null and expires_at <= statement_timestamp()
    and attempt = attempts_refunded
  order by id limit %(room)s
  for update skip locked
),
changed as (
  update dilamme_job j
  set status = 'cancelled', finished_at = clock_timestamp()
  from late
  where j.id = late.id and j.status || '' = 'pending'
  returning j.id, j.type, j.queue, j.attempt
),
noted as (
  insert into dilamme_jobevent (job_id, kind, attempt, actor, error, traceback)
  select id, 'expired', attempt, '', 'It was not started in time.', '' from changed
)
select id, type, queue, attempt from changed
