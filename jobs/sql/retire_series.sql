-- Let the series of a type that this code knows, and declares no rule for any more, say so.
update dilamme_series set fault = 'The code declares no rule for this type any more.'
where declared and fault = '' and type = any(%(types)s::text[]) and type <> all(%(declared)s::text[])
returning name
