-- One sweeper at a time, until the end of this transaction; the others go on with their work.
select pg_try_advisory_xact_lock(hashtext('dilamme'), hashtext(%(sweep)s))
