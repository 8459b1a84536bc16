-- A fragment, included by the statements that let jobs run: wakes the workers for what the CTE `wanted` holds, with one
-- notification for each queue and priority. What is due beyond the horizon is found by the workers' own look ahead.
due as (
  select queue, priority, min(run_at) as run_at
  from wanted
  where unmet = 0 and run_at < statement_timestamp() + %(horizon)s * interval '1 second'
  group by queue, priority
),
woken as (
  select
-- include _notify
  from due
)
