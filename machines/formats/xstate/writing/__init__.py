"""Definition in, XState out."""
