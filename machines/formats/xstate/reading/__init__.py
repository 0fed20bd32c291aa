"""XState in, definition out."""
