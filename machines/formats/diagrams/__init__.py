"""Diagrams as text: Mermaid and PlantUML are written and read, DOT is written."""
