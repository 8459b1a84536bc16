-- The next final jobs behind an id that ended longer ago than the retention. Ids are time-ordered, so that the oldest come
-- first along the primary key, and no index has to be kept for this.
select id, status || '' in ('completed', 'failed', 'cancelled')
    and finished_at < statement_timestamp() - %(retention)s * interval '1 second',
  exists (select from dilamme_jobdependency where child_id = j.id or parent_id = j.id)
from dilamme_job j
where id > %(behind)s and id < %(before)s
order by id limit %(room)s
