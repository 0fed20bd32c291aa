"""Faults that are put into the code by hand, one at a time, to see which tests notice them."""
