"""``manage.py machine diff`` and ``manage.py machine plan``."""

from __future__ import annotations

import io
import json

import pytest
from django.core.management import CommandError, call_command

from machines.engine import MigrationPlan

from ..content import ORDER, change, rename


def run(*arguments: str) -> tuple[str, str]:
    out, errors = io.StringIO(), io.StringIO()
    call_command("machine", *arguments, stdout=out, stderr=errors)
    return out.getvalue(), errors.getvalue()


@pytest.fixture
def published(engine):
    engine.publish(ORDER)
    engine.publish(rename(ORDER, "Paying", "Charging"))
    return engine


@pytest.fixture
def draft(tmp_path):
    def write(definition, name="order.json"):
        path = tmp_path / name
        path.write_text(json.dumps(definition))
        return str(path)

    return write


def test_diff_prints_what_needs_a_mapping_first(published):
    out, _ = run("diff", "order", "1", "v2")
    lines = out.splitlines()
    assert lines[0] == "order v1 -> v2: needs a mapping"
    assert lines[2] == "needs a mapping (1)"
    assert lines[3].startswith("  > state states.Charging: Paying -> Charging; it looks like the same state")
    assert run("diff", "order", "1", "1")[0] == "order v1 and v1 do not differ\n"


def test_diff_of_a_file(published, draft):
    found = json.loads(run("diff", "order", "1", draft(change(description="new")), "--json")[0])
    assert [(one["kind"], one["verb"], one["path"]) for one in found["changes"]] == [
        ("machine", "added", "description")
    ]
    text, _ = run("diff", "order", "2", draft(ORDER), "--text")
    assert text.startswith("--- order v2\n+++ order draft\n")
    with pytest.raises(CommandError, match="1 error"):
        run("diff", "order", "1", draft(change(initial="Nowhere")))
    with pytest.raises(CommandError, match="cannot be read"):
        run("diff", "order", "1", "nowhere.json")
    with pytest.raises(CommandError, match="SB420"):
        run("diff", "order", "1", "9")


def test_plan_prints_suggestions_and_warnings(published):
    out, errors = run("plan", "order", "--to", "2")
    assert "  Paying has no place: refuse\n    perhaps --map Paying=Charging (" in out
    assert 'warning: SB607 states.Paying: "Paying" of version 1 has no place in version 2' in errors


def test_a_plan_is_written_and_read_again(published, tmp_path):
    path = tmp_path / "plan.json"
    out, _ = run(
        "plan", "order", "--to", "2", "--from", "1", "--map", "Paying=Charging", "--map", "Held=", "--set",
        "total = total + 1", "--unmapped", "keep", "--timers", "now", "--keep-undo", "1h", "--out", str(path),
    )  # fmt: skip
    plan = MigrationPlan.from_dict(json.loads(path.read_text()))
    assert plan.sources[0].states["Paying"] == ("Charging",)
    assert plan.sources[0].unmapped_states == ("Held",)
    assert plan.sources[0].data == {"total": "total + 1"}
    assert (plan.unmapped, plan.options["timers"], plan.program()["undo"]) == ("keep", "now", 3_600_000)
    assert out.startswith(f"plan {plan.id}: order v1 to v2\n")
    assert "  Paying -> Charging (given)\n" in out
    assert published.check_plan(plan)


def test_plan_as_json(published):
    out, _ = run("plan", "order", "--to", "2", "--map", "Paying=Charging", "--json")
    assert MigrationPlan.from_dict(json.loads(out)).to == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--to", "9"), "SB420 no version 9 of machine 'order'"),
        (("--to", "2", "--map", "Payin=Charging"), "SB600 no plan was made: 1 error"),
        (("--to", "2", "--map", "Paying"), "--map: expected a name"),
        (("--to", "2", "--map", "Paying=[1"), "is no JSON list"),
        (("--to", "2", "--from", "one"), "--from: expected numbers"),
        (("--to", "2", "--from", "2"), "SB600"),
        (("--to", "2", "--out", "/nowhere/plan.json"), "cannot be written"),
    ],
)
def test_what_cannot_be_planned(published, arguments, message):
    with pytest.raises(CommandError) as caught:
        run("plan", "order", *arguments)
    assert message in str(caught.value)
