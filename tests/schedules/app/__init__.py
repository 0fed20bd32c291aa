"""An app that declares schedules."""
