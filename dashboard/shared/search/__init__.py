"""Searches of instances: the filter of a list."""
