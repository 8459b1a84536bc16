-- End runs that succeeded: the fence, the row, and one line of history each.
--
-- Found by primary key and nothing else. The statistics of a queue say that no row is running, so the planner would
-- rather walk the index of running rows with all its dead entries: `status || ''` and `is not distinct from` are
-- written so that no partial index answers them. Values per row come by array_position: a join with unnest() turns
-- into a nested loop, quadratic in the batch.
with ended as (
  update dilamme_job
  set status = 'completed', finished_at = clock_timestamp(), worker_id = null, last_error = '',
    result = case when %(results)s::jsonb[] is not null
      then (%(results)s::jsonb[])[array_position(%(ids)s::uuid[], id)] end
  where id = any(%(ids)s::uuid[])
    and status || '' = 'processing'
    and worker_id is not distinct from %(worker)s
    and attempt = case when %(attempt)s::int is not null then %(attempt)s::int
      else (%(attempts)s::int[])[array_position(%(ids)s::uuid[], id)] end
  returning id, attempt, started_at
),
noted as (
  insert into dilamme_jobevent (job_id, kind, attempt, worker_id, started_at, duration, actor, error, traceback)
  select id, 'completed', attempt, %(worker)s, started_at,
    (%(durations)s::float8[])[array_position(%(ids)s::uuid[], id)], '', '', ''
  from ended
)
-- Those whose claim was lost; null, which costs nothing to send and to read, if there are none.
select case when (select count(*) from ended) < cardinality(%(ids)s::uuid[])
  then array(select unnest(%(ids)s::uuid[]) except select id from ended) end
