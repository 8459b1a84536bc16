-- Take up to %(room)s due jobs for one worker, most urgent first by effective priority.
--
-- Inside one priority the older job is always the more urgent one, so the heads of each (queue, priority) range of the
-- index dilamme_job_ready are enough. They are read without locks and merged; then exactly as many rows as each range
-- contributes are locked there. Nothing is locked only to be thrown away.
with recursive
-- include _levels
, head as materialized (
  select l.queue, l.priority, h.id
  from level l
  cross join lateral (
    select id, run_at, created_at from dilamme_job
    where queue = l.queue and priority = l.priority and status = 'pending' and unmet = 0
      and run_at <= statement_timestamp()
    order by run_at, id limit %(room)s
  ) h
  -- scheduling.Aging.effective, word for word; a test holds the two together.
  order by
    greatest(1, round((l.priority - %(decrement)s::float8 * floor(greatest(0,
      extract(epoch from statement_timestamp() - h.run_at)::float8
      - (%(thresholds)s::float8[])[least(3, greatest(1, floor(l.priority + 0.5)))::int])
      / %(step)s::float8))::numeric, 9)),
    h.run_at, h.created_at, h.id
  limit %(room)s
),
share as materialized (select queue, priority, count(*) as n from head group by queue, priority),
taken as (
  update dilamme_job
  set status = 'processing', worker_id = %(worker)s, attempt = attempt + 1, started_at = clock_timestamp()
  where id = any(array(
    select l.id
    from share
    cross join lateral (
      select id from dilamme_job
      where queue = share.queue and priority = share.priority and status = 'pending' and unmet = 0
        and run_at <= statement_timestamp()
      order by run_at, id limit share.n
      for update skip locked
    ) l
  ))
  returning id, type, queue, priority, payload::text, attempt, attempts_refunded, max_attempts,
    extract(epoch from run_at)::float8, extract(epoch from created_at)::float8,
    extract(epoch from started_at)::float8, cancel_requested_at is not null
)
-- With each row how many heads were seen: as many as were asked for means that there may be more, and fewer rows than
-- heads that another worker was quicker. If nothing was taken, one row of nulls says so.
select seen.n, taken.* from (select count(*) as n from head) seen left join taken on true
