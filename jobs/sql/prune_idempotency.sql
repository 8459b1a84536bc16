-- Forget some idempotency keys that are older than the retention, but for those that are being taken anew.
with old as (
  select id from dilamme_idempotencykey
  where created_at < statement_timestamp() - make_interval(secs => %(retention)s::float8)
  order by created_at limit %(room)s for update skip locked
)
delete from dilamme_idempotencykey k using old where k.id = old.id
returning k.id
