-- What the database says this worker holds; asked after an outage, when a claim may have been committed unheard.
select id, type, queue, priority, payload::text, attempt, attempts_refunded, max_attempts,
  date_part('epoch', run_at), date_part('epoch', created_at),
  date_part('epoch', started_at), cancel_requested_at is not null,
  timeout, date_part('epoch', expires_at), date_part('epoch', scheduled_at), workflow_id
from dilamme_job
where worker_id = %(worker)s and status = 'processing'
