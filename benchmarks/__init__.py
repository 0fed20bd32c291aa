"""How fast the engine is, measured against peers in the same run: ``python -m benchmarks``."""
