-- Write down for which queues and priorities a worker needs no word of more jobs: enqueue_one.sql reads it.
update dilamme_worker set saturated = array(
  select queue || ' ' || priority from unnest(%(queues)s::text[], %(priorities)s::float8[]) level (queue, priority))
where id = %(worker)s
