-- Is anybody there?
select 1
