"""Commands of `manage.py` about jobs."""
