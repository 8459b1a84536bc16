-- Store the edges of new jobs. An edge to a parent that is settled already is stored as settled.
insert into dilamme_jobdependency (child_id, parent_id, on_failure, settled)
select * from unnest(%(children)s::uuid[], %(parents)s::uuid[], %(on_failure)s::text[], %(settled)s::bool[])
