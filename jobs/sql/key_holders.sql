-- Who holds these unique keys: see the index dilamme_job_unique_key.
select unique_key, id from dilamme_job
where unique_key = any(%(keys)s::text[]) and unique_key is not null
  and ((status = 'pending' and attempt = 0) or (status in ('pending', 'processing') and unique_while_running))
