"""Which version new instances get: roll-outs, pins, withdrawn versions, and the figures of each version."""
