-- The time, on the one clock that decides.
select statement_timestamp()
