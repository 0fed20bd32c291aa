"""The operator's room with a million instances in it: what its pages, its sockets and its browsers take.

``python -m benchmarks.room`` seeds twenty machines on a server of its own, serves the real site beside it,
and measures from outside; ``--share 0.1`` takes a tenth of the instances. Figures go to RESULTS.md.
"""
