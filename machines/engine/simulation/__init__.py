"""Simulations: instances that exist in memory only, stepped by the interpreter in Redis without reading or writing a
key."""
