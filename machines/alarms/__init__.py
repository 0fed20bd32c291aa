"""Alarms: what needs attention now, who takes care of it, and what was done about it."""
