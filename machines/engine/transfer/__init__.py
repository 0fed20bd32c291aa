"""Moves the instances of a machine: into a file, from a file, and between partitions."""
