"""State diagrams of Mermaid and PlantUML in, definition out: lines, statements, a chart of them, a definition."""
