"""What `manage.py demo` shows: real servers, a real worker, real jobs."""
