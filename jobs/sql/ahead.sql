-- How many due jobs of these queues are more urgent than one, counted up to %(limit)s: see claim.sql for the order.
select count(*) from (
  select 1
  from (
    select priority, run_at, created_at, id,
      greatest(1, round((priority - %(decrement)s::float8 * floor(greatest(0,
        date_part('epoch', statement_timestamp() - run_at)
        - (%(thresholds)s::float8[])[least(3, greatest(1, floor(priority + 0.5)))::int])
        / %(step)s::float8))::numeric, 9)) as effective
    from dilamme_job
    where status = 'pending' and unmet = 0 and queue = any(%(queues)s::text[]) and run_at <= statement_timestamp()
      and type = any(%(types)s::text[])
  ) other
  where (effective, run_at, created_at, id) < (
    select
      greatest(1, round((priority - %(decrement)s::float8 * floor(greatest(0,
        date_part('epoch', statement_timestamp() - run_at)
        - (%(thresholds)s::float8[])[least(3, greatest(1, floor(priority + 0.5)))::int])
        / %(step)s::float8))::numeric, 9)),
      run_at, created_at, id
    from dilamme_job where id = %(id)s::uuid)
  limit %(limit)s
) counted
