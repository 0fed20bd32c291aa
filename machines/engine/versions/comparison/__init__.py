"""Comparing two versions of a machine, part by part."""
