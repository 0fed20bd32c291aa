"""A small machine, and scenario files about it."""

from __future__ import annotations

from pathlib import Path

import yaml

from machines.engine.definitions import CompiledDefinition, compile_definition
from machines.testing.scenarios.document import ScenarioFile
from machines.testing.scenarios.reader import read_text

EXAMPLES = Path(__file__).parents[3] / "examples"

ORDER = {
    "id": "order",
    "initial": "New",
    "context": {"total": 0, "parcel": ""},
    "events": {"pay": {"payload": {"amount": 0}}, "approve": {}},
    "states": {
        "New": {
            "on": {"pay": {"target": "Paid", "guard": "event.amount >= total"}},
            "after": {"30d": {"target": "Expired", "actions": [{"emit": {"type": "expired"}}]}},
        },
        "Paid": {
            "invoke": {
                "id": "shipping",
                "src": "ship",
                "retry": {"attempts": 3, "backoff": "1m"},
                "onDone": {"target": "Shipped", "actions": [{"set": {"parcel": "event.result.parcel"}}]},
                "onError": "Failed",
            },
            "entry": [{"send": {"event": "paid", "to": "'#_scxml_ledger/main'"}}],
        },
        "Shipped": {"type": "final"},
        "Expired": {"type": "final"},
        "Failed": {"on": {"approve": {"target": "Paid", "allow": ["managers"]}}},
    },
}
LEDGER = {
    "id": "ledger",
    "initial": "Open",
    "accepts": {"from": ["order"]},
    "states": {"Open": {"on": {"paid": {}, "close": "Closed"}}, "Closed": {"type": "final"}},
}


def read(text: str) -> ScenarioFile:
    """Read scenarios that have nothing wrong."""
    file, findings = read_text(text)
    assert findings == []
    assert file is not None
    return file


def list_findings(text: str) -> list[str]:
    """Return code, line and path of each finding."""
    file, findings = read_text(text)
    assert (file is None) == bool(findings)
    return [f"{one.code} {one.line} {one.path}" for one in findings]


def make_file(*steps: dict, **given: object) -> ScenarioFile:
    """Make a file of one scenario of the machine ``order``."""
    scenario = {"name": "it", "given": {"data": {"total": 20}, **given}, "steps": list(steps)}
    return read(yaml.safe_dump({"machine": "order", "scenarios": [scenario]}))


def compile_all(*definitions: dict) -> dict[str, CompiledDefinition]:
    return {one["id"]: compile_definition(one) for one in definitions or (ORDER, LEDGER)}
