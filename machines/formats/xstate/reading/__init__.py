"""Reads an XState config to a definition."""
