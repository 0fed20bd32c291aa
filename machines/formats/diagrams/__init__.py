"""Diagrams as text: Mermaid is written and read, DOT is written."""
