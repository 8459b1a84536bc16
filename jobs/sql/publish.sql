-- Tell those who watch. Payloads are chunked by the caller to stay below PostgreSQL's 8,000 bytes.
select pg_notify('dilamme_live', message) from unnest(%(messages)s::text[]) message
