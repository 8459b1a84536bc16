-- Keep what a request was answered, in the transaction that has taken its idempotency key.
update dilamme_idempotencykey set status = %(status)s::int2, answer = %(answer)s where id = %(id)s
