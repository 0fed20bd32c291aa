"""Writes a definition as an SCXML document."""
