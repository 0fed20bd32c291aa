"""The diagram of a version on pages, and what is painted on it."""
