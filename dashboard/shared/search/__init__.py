"""Searches of instances: the filter of a list, and the line that writes the same filter as text."""
