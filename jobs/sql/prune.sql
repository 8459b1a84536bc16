-- Remove jobs that are over, with their edges, their history and their slots. What was made pending again meanwhile stays;
-- an edge that was added meanwhile keeps everything, by its foreign key.
with held as (
  select id from dilamme_job
  where id = any(%(ids)s::uuid[]) and status || '' in ('completed', 'failed', 'cancelled')
    and finished_at < statement_timestamp() - %(retention)s * interval '1 second'
  order by id for update skip locked
),
whole as (select count(*) = cardinality(%(ids)s::uuid[]) as yes from held),
going as materialized (select id from held where (select yes from whole) or not %(together)s),
edges as (delete from dilamme_jobdependency where child_id in (select id from going)),
events as (delete from dilamme_jobevent where job_id in (select id from going)),
untold as (delete from dilamme_unsettled where job_id in (select id from going)),
gone as (delete from dilamme_job where id = any(array(select id from going)) returning id)
select count(*) from gone
