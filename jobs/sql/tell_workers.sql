-- Tell every worker a word over the control channel; it is heard when the transaction commits.
select pg_notify('dilamme_control', %(word)s::text)
