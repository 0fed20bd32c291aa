"""Turns the groups of an identity provider into groups of Django, and so into rights, at each sign-in.

``SIGN_IN_GROUPS`` maps a group of the provider to groups of Django. These follow the provider: they are given and taken
away. All other groups, and all groups while the setting is empty, belong to the administrators of this site.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from django.contrib.auth.models import Group

from machines.conf import conf

log = logging.getLogger(__name__)


def read_groups(claims: Mapping[str, Any]) -> list[str]:
    """Return the groups that a provider names. OpenID Connect gives them in the answer for the user or in the token,
    SAML as an attribute; a single one may come as a text."""
    for part in (claims.get("userinfo"), claims.get("id_token"), claims):
        if isinstance(part, Mapping) and conf.SIGN_IN_CLAIM in part:
            found = part[conf.SIGN_IN_CLAIM]
            return [str(name) for name in ([found] if isinstance(found, str) else found or ())]
    return []


def assign_groups(user: Any, names: Iterable[str]) -> None:
    """Give the account the groups that its provider names now, and take away those that it no longer names."""
    mapped: Mapping[str, list[str]] = conf.SIGN_IN_GROUPS
    if not mapped:
        return
    named = set(names)
    if unknown := sorted(named - set(mapped)):
        log.info("sign-in of %s: groups without a mapping are ignored: %s", user.get_username(), ", ".join(unknown))
    wanted = {group for name in named & set(mapped) for group in mapped[name]}
    managed = {group for groups in mapped.values() for group in groups}
    groups = {group.name: group for group in Group.objects.filter(name__in=managed)}
    if missing := sorted(wanted - set(groups)):
        log.warning("SIGN_IN_GROUPS names groups that do not exist: %s", ", ".join(missing))
    held = set(user.groups.filter(name__in=managed).values_list("name", flat=True))
    user.groups.add(*(groups[name] for name in sorted(wanted - held) if name in groups))
    user.groups.remove(*(groups[name] for name in sorted(held - wanted)))
