"""Limits how often people may act, and how often they may have hidden values compared."""
