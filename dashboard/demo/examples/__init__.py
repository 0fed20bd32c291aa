"""Sample machines and the work they ask for: what the demo runs."""
