-- Hold the parents of a job that is being made, so that none can be settled until its edges are committed.
-- Ascending ids: the one order in which several jobs are locked.
select id, status from dilamme_job where id = any(%(ids)s::uuid[]) order by id for share
