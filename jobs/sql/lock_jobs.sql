-- Hold jobs that are going to be changed, in ascending id: the one order in which several jobs are locked.
select id, status, cancelled_because, attempt, unique_key from dilamme_job
where id = any(%(ids)s::uuid[]) order by id for update
