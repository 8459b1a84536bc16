-- A fragment, included by the statements that let jobs run: wakes the workers for what the CTE `wanted` holds, with one
-- notification for each queue and priority. It says from when on there is something: for what is due, since the start of
-- the transaction, or earlier if a job is older; so those of one transaction mostly read the same, and PostgreSQL sends
-- them once. What is due beyond the horizon is found by the workers' own look ahead.
due as (
  select queue, priority, min(run_at) as run_at
  from wanted
  where unmet = 0 and run_at < statement_timestamp() + %(horizon)s * interval '1 second'
  group by queue, priority
),
woken as (
  select pg_notify('dilamme_wakeup', queue || ' ' || priority || ' ' ||
    case when run_at > clock_timestamp() then 'later' else extract(epoch from least(run_at, now()))::text end)
  from due
)
