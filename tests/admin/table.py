"""Every screen of Django's admin, and who of the staff may open it. One that is not here fails the suite.

Who is no staff is sent to the login page by each of them.
"""

from __future__ import annotations

from typing import NamedTuple

Rules = list[tuple[str, int]]


class Screen(NamedTuple):
    """Codes for GET and for an empty POST: of the first rule that fits, 403 where none does.

    A rule names what has to be held: ``staff`` nothing more; ``view`` or ``audit`` on any machine; ``view here`` and
    the like on the machine that the thing is of; ``publish`` on every one; or a permission of Django.
    """

    get: Rules
    post: Rules


STAFF = [("staff", 200)]
NO_FORM = [("staff", 405)]
LEADS_ON = [("staff", 302)]
NOT_THERE = [("staff", 404)]
NEVER: Rules = []


def _read_only(model: str, needed: str) -> dict[str, Screen]:
    """Of a model that the admin only shows, of no machine."""
    return _shown(model, needed, [(needed, 200)], [(needed, 200)])


def _of_machine(model: str, right: str) -> dict[str, Screen]:
    """The same, of a model with rows of machines: one that may not be seen is one that is not there."""
    own = f"{right} here"
    return _shown(model, right, [(own, 200), (right, 302)], [(own, 200), ("view here", 403), ("staff", 302)])


def _shown(model: str, listed: str, row: Rules, history: Rules) -> dict[str, Screen]:
    return {
        f"{model}_changelist": Screen([(listed, 200)], [(listed, 200)]),
        f"{model}_add": Screen(NEVER, NEVER),
        f"{model}_history": Screen(history, history),
        f"{model}_delete": Screen(NEVER, NEVER),
        f"{model}_change": Screen(row, NEVER),
    }


def _of_django(model: str) -> dict[str, Screen]:
    """Accounts, which go by Django's own permissions."""
    view, add, change, delete = (f"auth.{what}_{model}" for what in ("view", "add", "change", "delete"))
    return {
        f"auth_{model}_changelist": Screen([(view, 200)], [(view, 200)]),
        f"auth_{model}_add": Screen([(add, 200)], [(add, 200)]),
        f"auth_{model}_history": Screen([(view, 200)], [(view, 200)]),
        f"auth_{model}_delete": Screen([(delete, 200)], [(delete, 200)]),
        f"auth_{model}_change": Screen([(view, 200)], [(change, 200)]),
    }


_GRANTS = Screen([("view here", 200), ("view", 302)], [("view and accounts", 200)])
SCREENS: dict[str, Screen] = {
    "index": Screen(STAFF, STAFF),
    "login": Screen(LEADS_ON, STAFF),
    "logout": Screen(NO_FORM, LEADS_ON),
    "password_change": Screen(STAFF, STAFF),
    "password_change_done": Screen(STAFF, NO_FORM),
    "jsi18n": Screen(STAFF, NO_FORM),
    "autocomplete": Screen([("auth.view_user", 200)], NO_FORM),
    "view_on_site": Screen(NOT_THERE, NOT_THERE),
    "app_list auth": Screen([("auth.view_user", 200), ("staff", 404)], [("auth.view_user", 200), ("staff", 404)]),
    "app_list machines": Screen([("anything", 200), ("staff", 404)], [("anything", 200), ("staff", 404)]),
    "nothing": Screen(NOT_THERE, NOT_THERE),
    **_of_django("user"),
    "auth_user_password_change": Screen([("auth.change_user", 200)], [("auth.change_user", 200)]),
    **_of_django("group"),
    **_of_machine("machines_machine", "view"),
    "machines_machine_change": _GRANTS,
    "machines_machine_instances": Screen([("view here", 200)], [("view here", 200)]),
    "machines_machine_instance": Screen([("view here", 200)], [("fire here", 400)]),
    **_of_machine("machines_machineversion", "view"),
    **_of_machine("machines_outboxentry", "view"),
    **_of_machine("machines_auditentry", "audit"),
    **_of_machine("machines_approval", "view"),
    **_read_only("machines_token", "machines.view_token"),
    **_read_only("machines_lastseen", "auth.view_user"),
}
QUERIES = {
    "machines_machine_instance": "?id=ATV-123%3ANBCSports",
    "autocomplete": "?app_label=machines&model_name=machineusergrant&field_name=user",
}
