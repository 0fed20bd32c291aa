"""Instances: what people read of them and do to them, and the forms of their events."""
