-- Hold a limited queue, so that those who claim from it come one after the other, each counting what the last has taken.
select name from dilamme_queue where name = %(queue)s for update
