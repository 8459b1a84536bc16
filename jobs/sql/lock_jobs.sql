-- Hold jobs that are going to be changed, in ascending id: the one order in which several jobs are locked.
select id, status, cancelled_because, unique_key, attempt = 0 or unique_while_running from dilamme_job
where id = any(%(ids)s::uuid[]) order by id for update
