"""An app with functions to map and reduce, for tests of real worker processes."""
