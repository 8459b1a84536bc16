-- In how many seconds the next slot of a series is due, and whether any waits for the end of a run.
select date_part('epoch', min(next_at) - clock_timestamp()), count(*) filter (where next_at is null and mode = 'after') > 0
from dilamme_series
where not paused and fault = '' and type = any(%(types)s::text[])
