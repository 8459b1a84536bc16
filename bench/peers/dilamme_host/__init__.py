"""The Django app and settings by which Dilamme is measured beside other systems."""
