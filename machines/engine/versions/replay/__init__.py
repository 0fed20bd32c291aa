"""The replay of recorded histories on a version of their machine."""
