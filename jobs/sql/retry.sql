-- Make final jobs pending again, with a new budget of attempts. The attempt number goes on: it is part of the fence.
-- The caller holds them and has counted what they wait for. Edges are settled as those of a new job would be.
with given as materialized (
  select * from unnest(%(ids)s::uuid[], %(unmet)s::int[], %(kinds)s::text[]) g(id, unmet, kind)
),
changed as (
  update dilamme_job j
  set status = 'pending', finished_at = null, attempts_refunded = j.attempt, cancel_requested_at = null,
    cancelled_because = null, unmet = given.unmet,
    expires_at = case when j.expires_at > clock_timestamp() then j.expires_at end,  -- else it would expire at once
    run_at = case when given.kind = 'retried' then clock_timestamp() else greatest(j.run_at, clock_timestamp()) end
  from given
  where j.id = any(%(ids)s::uuid[]) and j.id = given.id and j.status || '' in ('failed', 'cancelled')
  returning j.id, j.attempt, j.queue, j.priority, j.run_at, j.unmet
),
settled as (
  update dilamme_jobdependency d
  set settled = case (select status from dilamme_job where id = d.parent_id)
    when 'completed' then true
    when 'pending' then false
    when 'processing' then false
    else d.on_failure = 'run' and d.parent_id <> all(%(ids)s::uuid[])  -- those that are retried here will run again
  end
  where d.child_id = any(%(ids)s::uuid[])
),
noted as (
  insert into dilamme_jobevent (job_id, kind, attempt, actor, error, traceback)
  select changed.id, given.kind, changed.attempt, %(actor)s, '', '' from changed join given using (id)
),
wanted as (select queue, priority, run_at, unmet from changed),
-- include _wake
select id, (select count(*) from woken) from changed
