"""The same work done by other job queues, each in a virtual environment of its own, side by side with Dilamme.

Importing this package imports nothing: the interpreters of the other queues import it too, and have none of our
dependencies. `bench.peers.runner` is the door.
"""
