"""Writes a definition as an XState config."""
