"""The audit: who did what, with which outcome, and which sensitive values were shown."""
