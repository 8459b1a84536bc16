-- Take up to %(room)s due jobs for one worker, most urgent first by effective priority.
--
-- Inside one priority the older job is always the more urgent one, so the heads of each (queue, priority) range of the
-- index dilamme_job_ready are enough, from where the worker knows them to begin. They are read without locks and merged;
-- then exactly as many rows as each range contributes are locked there. Nothing is locked only to be thrown away.
with head as materialized (
  select l.queue, l.priority, l.since, l.first, h.id
  from (
    select queue, priority, to_timestamp(since) as since, first
    from unnest(%(queues)s::text[], %(priorities)s::float8[], %(sinces)s::float8[], %(firsts)s::uuid[])
      given(queue, priority, since, first)
  ) l
  cross join lateral (
    select id, run_at, created_at from dilamme_job
    where queue = l.queue and priority = l.priority and status = 'pending' and unmet = 0
      and (run_at, id) >= (l.since, l.first) and run_at <= statement_timestamp()
    order by run_at, id limit %(room)s
  ) h
  -- scheduling.Aging.effective, word for word; a test holds the two together. Inside one level it decides nothing.
  order by
    case when cardinality(%(queues)s::text[]) > 1 then
      greatest(1, round((l.priority - %(decrement)s::float8 * floor(greatest(0,
        date_part('epoch', statement_timestamp() - h.run_at)
        - (%(thresholds)s::float8[])[least(3, greatest(1, floor(l.priority + 0.5)))::int])
        / %(step)s::float8))::numeric, 9))
    end,
    h.run_at, h.created_at, h.id
  limit %(room)s
),
share as materialized (
  select queue, priority, since, first, count(*) as n from head group by queue, priority, since, first
),
taken as (
  update dilamme_job
  set status = 'processing', worker_id = %(worker)s, attempt = attempt + 1, started_at = clock_timestamp()
  where id = any(array(
    select l.id
    from share
    cross join lateral (
      select id from dilamme_job
      where queue = share.queue and priority = share.priority and status = 'pending' and unmet = 0
        and (run_at, id) >= (share.since, share.first) and run_at <= statement_timestamp()
      order by run_at, id limit share.n
      for update skip locked
    ) l
  ))
  returning id, type, queue, priority, payload::text, attempt, attempts_refunded, max_attempts,
    date_part('epoch', run_at), date_part('epoch', created_at),
    date_part('epoch', started_at), cancel_requested_at is not null,
    timeout, date_part('epoch', expires_at), date_part('epoch', scheduled_at), workflow_id
)
-- With each row how many heads were seen: as many as were asked for means that there may be more, and fewer rows than
-- heads that another worker was quicker. And whether a head was passed over because somebody had it locked: a row behind
-- it may have been taken in its place. If nothing was taken, one row of nulls says so.
select taken.*, seen.n, seen.passed_over
from (
  select count(*) as n, count(*) > (select count(*) from taken where id in (select id from head)) as passed_over
  from head
) seen
left join taken on true
