-- Take due jobs of one queue as far as its limits let: see claim.sql, of which this is the careful sister. The caller
-- holds the queue's row. What counts are live claims. Limits are read here, so that a change is in force at once.
with queue as materialized (
  select
    q.concurrency, q.concurrency_per_key, q.rate,
    case when q.rate is not null then
      least(coalesce(q.burst, greatest(1, ceil(q.rate)))::float8,
        q.tokens + q.rate * date_part('epoch', statement_timestamp() - coalesce(q.tokens_at, to_timestamp(0))))
    end as tokens
  from (select %(queue)s::text as name) given
  left join dilamme_queue q using (name)
),
running as materialized (
  select concurrency_key, count(*) as n from dilamme_job
  where status = 'processing' and queue = %(queue)s
    and exists (select from queue where concurrency is not null or concurrency_per_key is not null)
  group by concurrency_key
),
allowed as materialized (
  select concurrency_per_key, rate, tokens,
    greatest(0, least(
      %(room)s, concurrency - (select coalesce(sum(n), 0) from running), floor(tokens)))::int as n
  from queue
),
head as materialized (
  select h.*,
    greatest(1, round((l.priority - %(decrement)s::float8 * floor(greatest(0,
      date_part('epoch', statement_timestamp() - h.run_at)
      - (%(thresholds)s::float8[])[least(3, greatest(1, floor(l.priority + 0.5)))::int])
      / %(step)s::float8))::numeric, 9)) as effective
  from (
    select priority, to_timestamp(since) as since, first
    from unnest(%(priorities)s::float8[], %(sinces)s::float8[], %(firsts)s::uuid[]) given(priority, since, first)
  ) l
  cross join lateral (
    select id, run_at, created_at, concurrency_key from dilamme_job
    where queue = %(queue)s and priority = l.priority and status = 'pending' and unmet = 0
      and (run_at, id) >= (l.since, l.first) and run_at <= statement_timestamp()
      and type <> all(%(paused)s::text[])
    order by run_at, id
    limit (select case when concurrency_per_key is null then n else 1000 end from allowed)
  ) h
  where (select n from allowed) > 0
),
-- Of each key so many as its limit leaves, the most urgent first.
fitting as (
  select head.*,
    row_number() over (partition by head.concurrency_key order by effective, run_at, created_at, id)
      + coalesce((select n from running r where r.concurrency_key = head.concurrency_key), 0) as nth
  from head
),
picked as (
  select id from fitting
  where concurrency_key is null or (select concurrency_per_key from allowed) is null
    or nth <= (select concurrency_per_key from allowed)
  order by effective, run_at, created_at, id
  limit (select n from allowed)
),
taken as (
  update dilamme_job
  set status = 'processing', worker_id = %(worker)s, attempt = attempt + 1, started_at = clock_timestamp()
  where id = any(array(
    select j.id from dilamme_job j
    where j.id = any(array(select id from picked)) and j.status || '' = 'pending' and j.unmet + 0 = 0
    for update skip locked
  ))
  returning id, type, queue, priority, payload::text, attempt, attempts_refunded, max_attempts,
    date_part('epoch', run_at), date_part('epoch', created_at),
    date_part('epoch', started_at), cancel_requested_at is not null,
    timeout, date_part('epoch', expires_at), date_part('epoch', scheduled_at), workflow_id
),
spent as (
  update dilamme_queue q
  set tokens = allowed.tokens - (select count(*) from taken), tokens_at = statement_timestamp()
  from allowed
  where q.name = %(queue)s and allowed.rate is not null
)
-- With each row, in how many seconds the rate lets the next job start; null where it is not what holds back.
select taken.*, (
  select case when rate is not null and tokens - (select count(*) from taken) < 1
    then (1 - tokens + (select count(*) from taken)) / rate end from allowed)
from (select 1) one left join taken on true
