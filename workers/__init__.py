"""The processes that run jobs, and the built-in handlers."""
