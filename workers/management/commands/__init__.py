"""`manage.py runworker`."""
