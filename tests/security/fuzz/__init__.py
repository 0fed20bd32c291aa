"""Random input for everything that takes input from outside, from a seed: each one can be made again by its number.

``python -m tests.security.fuzz --kind expressions --count 50000 --seed 7`` looks for what breaks a promise; the worst
that was ever found stays in ``finds/`` and is played by the suite, beside some thousands of new inputs of one seed.
"""
