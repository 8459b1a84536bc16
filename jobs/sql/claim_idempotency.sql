-- Take an idempotency key for this transaction; no row comes back if an earlier request has it within the retention.
-- Who comes while that one is still at it waits here for its end, and is the first if it was rolled back.
insert into dilamme_idempotencykey as kept (client, key, digest, created_at)
values (%(client)s, %(key)s, %(digest)s, statement_timestamp())
on conflict (client, key) do update
set digest = excluded.digest, status = null, answer = null, created_at = excluded.created_at
where kept.created_at < statement_timestamp() - make_interval(secs => %(retention)s::float8)
returning id
