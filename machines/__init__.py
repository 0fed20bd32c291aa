"""State machines: definitions, the engine that runs them inside Redis, and the workers that do their work."""

__version__ = "0.1.0"
