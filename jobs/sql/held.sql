-- What the database says this worker holds; asked after an outage, when a claim may have been committed unheard.
select id, type, queue, priority, payload::text, attempt, attempts_refunded, max_attempts,
  extract(epoch from run_at)::float8, extract(epoch from created_at)::float8,
  extract(epoch from started_at)::float8, cancel_requested_at is not null
from dilamme_job
where worker_id = %(worker)s and status = 'processing'
