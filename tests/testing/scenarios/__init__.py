"""Scenario files: reading, running, reporting, and making them."""
