"""The handlers that come with Dilamme: plain functions from keyword arguments to a JSON-able dict.

They never register themselves and never touch a job: whatever one of them raises is one failed attempt, and
its text is what operators read.
"""
