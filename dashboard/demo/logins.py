"""Makes the demo's accounts: one for each role, with random passwords."""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from django.contrib.auth import get_user_model

from dashboard.site import home
from machines.people.permissions import ROLES
from machines.people.roles import make

ADMIN = "admin"
ACCOUNTS = {
    ADMIN: "full access",
    "supervisor": "views, fires events, repairs and manages",
    "operator": "views and fires events",
    "viewer": "views only",
}


@dataclass(frozen=True, slots=True)
class Login:
    """``password`` is empty where it was changed since."""

    name: str
    password: str
    may: str


def prepare(folder: Path) -> list[Login]:
    """Make the missing accounts. Passwords are generated once and kept in ``folder``/logins.json."""
    kept = _keep_passwords(folder / "logins.json")
    return [Login(name, _prepare_account(name, kept[name]), may) for name, may in ACCOUNTS.items()]


def _prepare_account(name: str, password: str) -> str:
    """Return the password that works for the account, or an empty one when ours does not."""
    user, created = get_user_model().objects.get_or_create(
        username=name, defaults={"is_staff": name == ADMIN, "is_superuser": name == ADMIN}
    )
    if created:
        user.set_password(password)
        user.save(update_fields=["password"])
        if name in ROLES:
            user.groups.add(make(name))
    return password if user.check_password(password) else ""


def _keep_passwords(path: Path) -> dict[str, str]:
    """Return the passwords of earlier starts, with new ones where they are missing. Only its owner may read the
    file."""
    fresh = {name: secrets.token_urlsafe(9) for name in ACCOUNTS}
    text = home.keep(path, json.dumps(fresh, indent=2))
    os.chmod(path, 0o600)
    try:
        known = json.loads(text)
    except ValueError:
        known = {}
    return {name: str(known.get(name) or fresh[name]) for name in ACCOUNTS}
