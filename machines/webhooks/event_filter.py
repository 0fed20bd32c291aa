"""Decides which messages a webhook gets."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from .models import Webhook

STEP = "signalbox.step"
"""The type of the messages about steps, which nobody emits. A webhook gets them that names it; ``*`` does not."""
ROLLOUT = "signalbox.rollout"
"""The type of the messages about roll-outs, pins and withdrawn versions, by the same rule."""


def wants_steps(webhook: Webhook) -> bool:
    """Tell whether a webhook gets a message for each step of its machines."""
    return STEP in webhook.types


def matches_filter(webhook: Webhook, machine: str, type: str, at: int) -> bool:
    """Tell whether a message that was emitted ``at`` (ms by Redis' clock) is for it."""
    if at < webhook.since or (webhook.machines and machine not in webhook.machines):
        return False
    if type in (STEP, ROLLOUT):
        return type in webhook.types
    return _compile_pattern(tuple(webhook.types)).fullmatch(type) is not None


@lru_cache(maxsize=256)
def _compile_pattern(types: Sequence[str]) -> re.Pattern[str]:
    """Compile a pattern. ``*`` stands for any characters, none too; everything else for itself."""
    return re.compile("|".join(".*".join(map(re.escape, type.split("*"))) for type in types) or r"(?!)", re.DOTALL)
