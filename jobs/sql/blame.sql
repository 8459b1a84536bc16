-- Say anew because of which job these stay cancelled.
update dilamme_job j set cancelled_because = given.root
from unnest(%(ids)s::uuid[], %(roots)s::uuid[]) given(id, root)
where j.id = given.id and j.status || '' = 'cancelled'
returning j.id
