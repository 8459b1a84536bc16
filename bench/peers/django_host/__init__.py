"""The Django project in which the task backends for Django are measured: one app, one handler, one adapter's base."""
