"""Reads an SCXML document to a definition."""
