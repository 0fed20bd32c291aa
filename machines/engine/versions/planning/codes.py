"""The findings of plans: one code for each kind, which never changes once published."""

from __future__ import annotations

from machines.engine.definitions import Code, Finding

PLAN_CODES = {
    code.code: code
    for code in [
        Code("SB600", "a plan, or one of its policies, is malformed", "correct the part at the path"),
        Code("SB601", "there is nothing to move", "name other versions in `from_versions`"),
        Code("SB602", "a state is named that the version does not have, or a history state", "correct the name"),
        Code("SB603", "the states of a place exclude each other", "name one state for each region"),
        Code("SB604", "a data field is named that the new version does not declare", "correct the name"),
        Code("SB605", "an expression cannot be read, or can never give what the field holds", "correct the expression"),
        Code("SB606", "a version of the plan is no longer what it was", "make the plan anew"),
        Code("SB607", "a state has no place in the new version", "name one in `states`, or choose `unmapped`"),
        Code("SB608", "it depends on the instance whether it can move", "see the dry run"),
        Code("SB609", "the new version does not know events that may wait for an instance", "listen for them"),
    ]
}
WARNINGS = frozenset(["SB607", "SB608", "SB609"])


def make_plan_finding(code: str, path: str, message: str, hint: str = "") -> Finding:
    """Make a finding with the severity of its code."""
    return Finding(code, path, message, hint, "warning" if code in WARNINGS else "error")
