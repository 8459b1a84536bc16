-- The next jobs of a workflow that stand like this, in ascending id: parents before children.
select id from dilamme_job
where workflow_id = %(workflow)s and status || '' = any(%(statuses)s::text[]) and id > %(behind)s
order by id limit %(room)s
