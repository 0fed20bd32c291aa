"""Diagrams as text for other tools: Mermaid, PlantUML, DOT. They are written, never read."""
