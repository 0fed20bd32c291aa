"""Puts an action of the audit into words: as a choice of the filter, and as the verb of an entry's sentence."""

from machines.audit.entries import ACTIONS, DONE

GROUPS = {
    "Instances": (),  # all that no other group names
    "Versions": ("publish", "draft", "plan", "rollout", "version"),
    "Machines": ("machine",),
    "Queues, jobs and workers": ("queue", "job", "worker"),
    "Bulk actions and runs": ("bulk", "run"),
    "Schedules": ("schedule",),
    "Approvals": ("approval",),
    "Alarms and errors": ("alarm", "route", "failure"),
    "Webhooks": ("webhook",),
    "Accounts": ("login", "logout", "token", "session", "user", "group", "grant"),
    "Audit": ("audit", "export"),
}
NOUNS = {
    "plan": "migration plan", "rollout": "roll-out", "bulk": "bulk action", "approval": "request",
    "route": "alarm route", "failure": "error group",
}  # fmt: skip
VERBS = {
    "put": "save", "make": "create", "ask": "file", "redrive": "retry", "take_over": "take over", "work": "resume",
    "set": "change", "limit": "change the limit of", "rate": "change the rate of", "password": "change the password of",
    "groups": "change the groups of", "rights": "change the rights of", "rotate": "rotate the secret of",
    "redeliver": "repeat a message of",
}  # fmt: skip
PHRASES = {
    "explain": "preview the event", "fire": "send the event", "force": "force the state", "edit": "edit the data",
    "reveal": "reveal values", "login": "log in", "login.failed": "fail to log in", "logout": "log out",
    "login.throttled": "try too often to log in", "version.policy": "change the approval policy",
    "queue.redrive": "retry the dead jobs of", "machine.erase": "erase the field",
    "audit.seal": "seal removed entries",
}  # fmt: skip
PAST = {
    "stop": "stopped", "skip": "skipped", "pin": "pinned", "log": "logged", "cancel": "cancelled", "reset": "reset",
    "send": "sent", "run": "ran", "withdraw": "withdrew", "write": "wrote", "take": "took",
    "wake": "woke",
}  # fmt: skip


def describe_action(action: str, *, noun: bool = True) -> str:
    """Return ``pause the queue`` for ``queue.pause``; without the noun ``pause``."""
    if phrase := PHRASES.get(action):
        return phrase
    kind, _, verb = action.partition(".")
    words = VERBS.get(verb or kind, verb or kind)
    return f"{words} the {NOUNS.get(kind, kind)}" if verb and noun else words


def describe_attempt(action: str, outcome: str, *, noun: bool = True) -> str:
    """Return ``paused the queue``, or ``tried to pause the queue`` if that was not done."""
    words = describe_action(action, noun=noun)
    if outcome != DONE and not action.startswith("login."):
        return f"tried to {words}"
    verb, space, rest = words.partition(" ")
    return _form_past(verb) + space + rest


def describe_retry(outcome: str, groups: int) -> str:
    """Return ``retried dead jobs of 2 error groups``: of any, as far as is known."""
    named = f"{groups} error group{'' if groups == 1 else 's'}" if groups else "any error group"
    return f"{'retried' if outcome == DONE else 'tried to retry'} dead jobs of {named}"


def _form_past(verb: str) -> str:
    if verb in PAST:
        return PAST[verb]
    return verb[:-1] + "ied" if verb.endswith("y") else verb + ("d" if verb.endswith("e") else "ed")


def list_choices() -> list[tuple[str, list[tuple[str, str]]]]:
    """List the actions for a filter, each group with its name."""
    groups: dict[str, list[tuple[str, str]]] = {name: [] for name in GROUPS}
    for action in ACTIONS:
        kind = action.partition(".")[0]
        name = next((name for name, kinds in GROUPS.items() if kind in kinds), "Instances")
        groups[name].append((action, describe_action(action)))
    return list(groups.items())
