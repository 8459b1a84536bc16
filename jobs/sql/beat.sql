-- Renew a worker's lease on the database clock; the row is made again should somebody have removed it.
insert into dilamme_worker (id, name, queues, types, concurrency, listening, stopping, started_at, lease_expires_at)
values (
  %(worker)s, %(name)s, %(queues)s::jsonb, %(types)s::jsonb, %(concurrency)s, %(listening)s, %(stopping)s,
  statement_timestamp(), statement_timestamp() + %(lease)s * interval '1 second')
on conflict (id) do update
set lease_expires_at = excluded.lease_expires_at, listening = excluded.listening, stopping = excluded.stopping
