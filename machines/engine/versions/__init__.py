"""Versions of a machine: how they differ, and how instances move from one to another."""

from .diff import Change, DefinitionDiff
from .planning.plan import MigrationPlan, SourcePlan
from .records import (
    KEPT,
    MOVES,
    REFUSED,
    SUSPENDS,
    Divergence,
    DryRun,
    Migrated,
    MigrationClass,
    RefusedInstance,
    Replay,
    StepOutcome,
)
from .rollout import Attempts, Guard, Rollout, StateTime, VersionChoice, VersionFigures, VersionPin, Withdrawal

__all__ = [
    "KEPT",
    "MOVES",
    "REFUSED",
    "SUSPENDS",
    "Attempts",
    "Change",
    "DefinitionDiff",
    "Divergence",
    "DryRun",
    "Guard",
    "Migrated",
    "MigrationClass",
    "MigrationPlan",
    "RefusedInstance",
    "Replay",
    "Rollout",
    "SourcePlan",
    "StateTime",
    "StepOutcome",
    "VersionChoice",
    "VersionFigures",
    "VersionPin",
    "Withdrawal",
]
