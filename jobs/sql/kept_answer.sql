-- What was answered to the request that has this idempotency key.
select digest, status, answer from dilamme_idempotencykey where client = %(client)s and key = %(key)s
