-- Remove a worker that left in order, and those whose lease ran out a day ago. Jobs do not depend on these rows.
delete from dilamme_worker
where id = %(worker)s or lease_expires_at < statement_timestamp() - interval '1 day'
