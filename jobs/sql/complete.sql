-- End runs that succeeded: the fence, the row, and one line of history each.
--
-- Found by primary key and nothing else. The statistics of a queue say that no row is running, so the planner would
-- rather walk the index of running rows with all its dead entries: `status || ''` and `is not distinct from` are
-- written so that no partial index answers them. Values per row come by array_position: a join with unnest() turns
-- into a nested loop, quadratic in the batch.
with ended as (
  update dilamme_job
  set status = 'completed', finished_at = clock_timestamp(), worker_id = null, last_error = '',
    result = (%(results)s::jsonb[])[array_position(%(ids)s::uuid[], id)]
  where id = any(%(ids)s::uuid[])
    and status || '' = 'processing'
    and worker_id is not distinct from %(worker)s
    and attempt = (%(attempts)s::int[])[array_position(%(ids)s::uuid[], id)]
  returning id, attempt, started_at
),
noted as (
  insert into dilamme_jobevent (job_id, kind, attempt, worker_id, started_at, duration, actor, error, traceback)
  select id, 'completed', attempt, %(worker)s, started_at,
    (%(durations)s::float8[])[array_position(%(ids)s::uuid[], id)], '', '', ''
  from ended
)
select id from ended
