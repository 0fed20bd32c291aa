"""An app that declares tasks."""
