"""Commands of the reference host."""
