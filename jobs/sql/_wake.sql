-- A fragment, included by the statements that make jobs: wakes the workers for what the CTE `made` holds.
-- One notification per queue; those of one transaction that read the same are sent once by PostgreSQL. What is due
-- beyond the horizon is found by the workers' own look ahead.
due as (
  select queue, min(run_at) as run_at
  from made
  where unmet = 0 and run_at < statement_timestamp() + %(horizon)s * interval '1 second'
  group by queue
),
woken as (
  select pg_notify('dilamme_wakeup', case when run_at <= statement_timestamp() then queue else queue || '@later' end)
  from due
)
