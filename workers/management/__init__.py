"""Commands of the workers."""
