-- Make final jobs pending again, with a new budget of attempts. The attempt number goes on: it is part of the fence.
-- The caller holds them and has counted what they wait for. Edges are settled as those of a new job would be.
with given as materialized (
  select * from unnest(%(ids)s::uuid[], %(unmet)s::int[], %(kinds)s::text[]) g(id, unmet, kind)
),
changed as (
  update dilamme_job j
  set status = 'pending', finished_at = null, attempts_refunded = j.attempt, cancel_requested_at = null,
    cancelled_because = null, unmet = given.unmet,
    run_at = case when given.kind = 'retried' then clock_timestamp() else greatest(j.run_at, clock_timestamp()) end
  from given
  where j.id = given.id and j.status || '' in ('failed', 'cancelled')
  returning j.id, j.attempt, j.queue, j.priority, j.run_at, j.unmet
),
settled as (
  update dilamme_jobdependency d
  set settled = p.status || '' = 'completed' or (d.on_failure = 'run' and p.status || '' in ('failed', 'cancelled')
    and not p.id = any(%(ids)s::uuid[]))
  from dilamme_job p
  where d.child_id = any(%(ids)s::uuid[]) and p.id = d.parent_id
),
noted as (
  insert into dilamme_jobevent (job_id, kind, attempt, actor, error, traceback)
  select changed.id, given.kind, changed.attempt, %(actor)s, '', '' from changed join given using (id)
),
wanted as (select queue, priority, run_at, unmet from changed),
-- include _wake
select id, (select count(*) from woken) from changed
