"""An app with handlers, for tests of real worker processes."""
