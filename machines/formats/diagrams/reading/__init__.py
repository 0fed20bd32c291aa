"""Reads state diagrams of Mermaid in four steps: lines, statements, a chart, a definition."""
