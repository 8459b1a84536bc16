"""An app whose handlers run in the worker processes of the tests."""
