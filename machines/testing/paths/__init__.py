"""Runs that take every transition of a machine, found by trying it out on a real engine.

- ``candidates``: what can be done to an instance: events with payloads, results of jobs, time
- ``explorer``: tries them, and keeps a graph of what led where
- ``generation``: few runs through that graph as scenarios that pass, and what was not reached
"""
