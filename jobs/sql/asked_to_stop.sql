-- Which of its running jobs a worker was asked to stop: what it would have heard by notification.
select id from dilamme_job where worker_id = %(worker)s and status = 'processing' and cancel_requested_at is not null
