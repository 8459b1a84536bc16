-- A fragment: what jobs that are being made have in common, each set of terms once, by number.
terms as materialized (
  select n, type, queue, priority, coalesce(run_at, statement_timestamp()) as run_at, max_attempts,
    workflow, step, timeout, expires_at, wakes, concurrency_key, metadata
  from unnest(
    %(types)s::text[], %(queues)s::text[], %(priorities)s::float8[], %(run_ats)s::timestamptz[],
    %(max_attempts)s::int[], %(workflows)s::uuid[], %(steps)s::text[], %(timeouts)s::float8[],
    %(expire_ats)s::timestamptz[], %(wakes)s::bool[], %(concurrency_keys)s::text[],
    %(metadatas)s::jsonb[]
  ) with ordinality t(type, queue, priority, run_at, max_attempts, workflow, step, timeout, expires_at, wakes,
    concurrency_key, metadata, n)
)
