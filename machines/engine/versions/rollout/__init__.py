"""Which version new instances get: roll-outs, pins, withdrawn versions, and the figures of each version."""

from .records import Attempts, Guard, Rollout, StateTime, VersionChoice, VersionFigures, VersionPin, Withdrawal

__all__ = ["Attempts", "Guard", "Rollout", "StateTime", "VersionChoice", "VersionFigures", "VersionPin", "Withdrawal"]
