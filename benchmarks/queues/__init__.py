"""How fast workers are, ours and the field's, in the same run: ``python -m benchmarks.queues``."""
