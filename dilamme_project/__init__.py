"""The reference host: a Django project with Dilamme in it."""
