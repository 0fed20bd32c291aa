"""Machines of other libraries: a tree of states and a table of transitions, with conditions and callbacks by name."""
