-- Make the series that the code declares what it says they are. Whether one is paused is left alone, and so is one of the
-- same name that somebody made by hand. A rule that has changed counts from now.
insert into dilamme_series as s (
  name, type, payload, interval, cron, zone, mode, catch_up, catch_up_limit, overlap, jitter, starts_at,
  paused, declared, fault, last_slot, next_at, skipped)
select
  g.name, g.name, '{}', g.interval, g.cron, g.zone, 'grid', g.catch_up, 100, g.overlap, 0, g.starts_at,
  false, true, '', statement_timestamp(), g.next_at, 0
from unnest(
  %(names)s::text[], %(intervals)s::text[], %(crons)s::text[], %(zones)s::text[], %(catch_ups)s::text[],
  %(overlaps)s::text[], %(starts)s::timestamptz[], %(next_ats)s::timestamptz[]
) g(name, interval, cron, zone, catch_up, overlap, starts_at, next_at)
order by g.name
on conflict (name) do update
set type = excluded.type, catch_up = excluded.catch_up, overlap = excluded.overlap, fault = '',
  interval = excluded.interval, cron = excluded.cron, zone = excluded.zone,
  starts_at = case when (s.interval, s.cron, s.zone) = (excluded.interval, excluded.cron, excluded.zone)
    then s.starts_at else excluded.starts_at end,
  last_slot = case when (s.interval, s.cron, s.zone) = (excluded.interval, excluded.cron, excluded.zone)
    then s.last_slot else excluded.last_slot end,
  next_at = case when (s.interval, s.cron, s.zone) = (excluded.interval, excluded.cron, excluded.zone)
    then coalesce(s.next_at, excluded.next_at) else excluded.next_at end
where s.declared
