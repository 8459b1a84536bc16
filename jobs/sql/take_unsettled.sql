-- Take over jobs whose dependants have not all been told; whoever does so tells them in the same transaction.
delete from dilamme_unsettled
where job_id in (select job_id from dilamme_unsettled order by job_id limit %(room)s for update skip locked)
returning job_id
