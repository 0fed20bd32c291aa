"""Definitions to start from: one JSON file each, which has no findings."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Starter:
    """``about``: what it shows."""

    name: str
    label: str
    about: str

    @property
    def text(self) -> str:
        return (FOLDER / f"{self.name}.json").read_text(encoding="utf-8")


_ALL = (
    Starter("empty", "Empty", "two states and one event"),
    Starter("order", "Order", "payloads, guards, a job with retries, timers"),
    Starter("approval", "Approval", "states in states, an escalation, rounds"),
    Starter("subscription", "Subscription", "timers that go round, a job that may fail, reminders"),
    Starter("parallel", "Onboarding", "three regions that go on side by side"),
)


@cache
def list_starters() -> dict[str, Starter]:
    return {starter.name: starter for starter in _ALL}
