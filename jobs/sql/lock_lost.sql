-- Lock the running jobs whose worker's lease has run out, or whose worker is gone altogether.
--
-- Liveness comes from the lease and from nothing else: a pruned or never written worker row means that nobody holds
-- it. A claim younger than a lease is left alone, for its worker may be about to write its first heartbeat. A lease that
-- ran out before the server came up counts as renewed then: while it was down nobody could renew one.
select j.worker_id, j.id, j.type, j.queue, j.priority, '', j.attempt, j.attempts_refunded, j.max_attempts,
  date_part('epoch', j.run_at), date_part('epoch', j.created_at),
  date_part('epoch', j.started_at)
from dilamme_job j
where j.status = 'processing'
  and j.started_at < statement_timestamp() - %(lease)s * interval '1 second'
  and not exists (
    select from dilamme_worker w
    where w.id = j.worker_id and (
      w.lease_expires_at > statement_timestamp()
      or (w.lease_expires_at < pg_postmaster_start_time()
          and pg_postmaster_start_time() > statement_timestamp() - %(lease)s * interval '1 second')))
order by j.id
limit %(room)s
for update of j skip locked
