"""The Studio: text, diagram and findings of a definition side by side, and drafts while they are written."""
