"""State diagrams of Mermaid in, definition out: lines, statements, a chart of them, a definition."""
