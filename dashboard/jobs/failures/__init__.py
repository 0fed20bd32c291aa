"""Pages of the error inbox."""
