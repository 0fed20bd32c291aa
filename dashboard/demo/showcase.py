"""Prepares what takes more than one version or one person to see: a roll-out, a move between versions that waits for a
second person, coverage from tests."""

from random import Random

from django.contrib.auth import get_user_model

from dashboard.site import home
from machines.approvals import actions as approvals
from machines.approvals.models import Approval
from machines.catalog import coverage
from machines.catalog.errors import ApprovalNeeded
from machines.catalog.models import StoredCoverage
from machines.catalog.publishing import prepare, write
from machines.catalog.version_rules import MIGRATE
from machines.catalog.versions import rollouts
from machines.connections import get_engine
from machines.engine.errors import SignalboxError
from machines.formats import load
from machines.instances import plans
from machines.instances.bulks import actions as bulks
from machines.people.actor import Actor

from .preparation import AUTHOR
from .processes import DemoFailed

ROLLOUTS = home.SAMPLES / "rollouts"
COVERAGE = home.SAMPLES / "coverage" / "samples.json"
PERCENT = 20  # of the new instances
NEWS = "A code that nobody enters lapses."
MOVED, ASKER = "activation", "supervisor"
MOVE = "Old codes are to lapse as well."


def start_rollouts() -> str:
    """Roll out the newer samples, each once: one that was stopped stays stopped, one that was finished stays current.
    Return which are under way."""
    engine = get_engine()
    try:
        for file in sorted(ROLLOUTS.glob("*.json")):
            compiled = prepare(load(file.read_bytes())).compiled
            if engine.rollout(file.stem) is None and engine.versions(file.stem) == [1]:
                write(compiled, notes=NEWS, rollout=PERCENT)
                # Few instances have the version: an event that is refused now and then would look like a fault of it.
                engine.set_rollout(file.stem, PERCENT, guard={"refusals": False}, reason=NEWS)
        found = {file.stem: engine.rollout(file.stem) for file in sorted(ROLLOUTS.glob("*.json"))}
    except SignalboxError as error:
        raise DemoFailed(f"the sample roll-outs cannot be started: {error}") from None
    under_way = [f"{name} v{one.version} at {one.percent:g} %" for name, one in found.items() if one and one.under_way]
    return ", ".join(under_way) or "none"


def record_coverage() -> str:
    """Record what the scenarios of the samples cover, as ``machine test --coverage --record`` does; return of which
    machines."""
    found = coverage.read(COVERAGE.read_text(encoding="utf-8"))
    return ", ".join(row.machine for row in StoredCoverage.record(found, "the scenarios of the samples"))


def fill_table(seed: int) -> str:
    """Add rows whose status another state library moves; return the machine that follows them."""
    from dashboard.demo.examples import visits  # the library comes with the extra of the demo

    return visits.fill(Random(seed))


def ask_for_move() -> bool:
    """Have an account of the demo plan the move of all instances to the version in the roll-out, and ask a second
    person to let it run. Call it again until it returns True: a worker makes the preview in between. A plan is made
    once, and asked for once."""
    rollout = get_engine().rollout(MOVED)
    asker = get_user_model().objects.filter(username=ASKER).first()
    if asker is None or rollout is None or not rollout.under_way:
        return True
    actor = Actor(asker, "demo")
    plan = plans.list_plans(actor, MOVED).first()
    if plan is None:
        rollouts.set_policy(AUTHOR, MOVED, [MIGRATE], reason="a move changes the rules of living instances")
        plan = plans.store(actor, plans.make(actor, MOVED, rollout.version), note=MOVE)
        plans.move(actor, plan.pk, reason=MOVE)
        return False
    bulk = plans.progress(actor, plan).bulk
    if plan.author != ASKER or bulk is None or Approval.objects.filter(bulk=plan.bulk).exists():
        return True
    if bulk.state == "previewed":
        try:
            bulks.run(actor, plan.bulk)
        except ApprovalNeeded as needed:
            approvals.ask(actor, needed)
    return bulk.state not in bulks.DRY
