-- A fragment, included where workers are woken for one queue and priority: it says from when on there is something; for
-- what is due, since the start of the transaction, or earlier if a job is older; so those of one transaction mostly read
-- the same, and PostgreSQL sends them once.
pg_notify('dilamme_wakeup', queue || ' ' || priority || ' ' ||
  extract(epoch from least(run_at, now())) || case when run_at > clock_timestamp() then ' later' else '' end)
