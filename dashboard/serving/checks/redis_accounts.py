"""The commands that each Redis account (ACL) of the product needs, and no others.

::

    python -m dashboard.serving.checks.redis_accounts --prefix sb:     # the lines for ACL SETUSER, without passwords
    python -m dashboard.serving.checks.redis_accounts --cluster        # the same for the nodes of a cluster

A test holds the lists to the functions library and runs each account on real servers; docs/acl.md is made of them.
"""

import argparse
from dataclasses import dataclass

from dashboard.site.stores import web_prefix
from machines.engine.connection.server_permissions import LOADS, READS, STEP

PREFIX = "sb:"
CLUSTER = ("asking", "cluster|info", "cluster|slots", "command")
"""What finds the nodes of a cluster, follows a slot that moves, and asks whether all slots are served."""


@dataclass(frozen=True, slots=True)
class Account:
    """``commands`` as ACL SETUSER names them; ``keys`` and ``channels`` as patterns, with the prefix in place of ``{}``
    and its form for cache and sessions in place of ``{web}``. ``reads``: whether keys are for reading only."""

    about: str
    commands: tuple[str, ...]
    keys: tuple[str, ...] = ("{}*",)
    channels: tuple[str, ...] = ("{}*",)
    reads: bool = False

    def rules(self, prefix: str = PREFIX, *, cluster: bool = False) -> list[str]:
        """List the words for ``ACL SETUSER <name>``, except the password. ``cluster``: for each node of a cluster."""
        commands = (*self.commands, *CLUSTER) if cluster else self.commands

        def patterns(sign: str, given: tuple[str, ...]) -> list[str]:
            return [sign + pattern.format(prefix, web=web_prefix(prefix)) for pattern in given]

        return [
            "reset", "on",
            *patterns("%R~" if self.reads else "~", self.keys),
            *patterns("&", self.channels),
            *(f"+{command}" for command in sorted(commands)),
        ]  # fmt: skip


ACCOUNTS = {
    "engine": Account(
        "a program that uses machines.engine and machines.patterns",
        (*STEP, "scan", "ssubscribe", "sunsubscribe", "wait"),
    ),
    "web": Account(
        "the site: pages, API, websockets, cache and sessions",
        (*STEP, "subscribe", "unsubscribe", "ssubscribe", "sunsubscribe", "wait"),
        keys=("{}*", "{web}*"),
        channels=("{}*", "__keyspace@0__:{}*"),
    ),
    "worker": Account(
        "python manage.py worker",
        (*STEP, "scan", "ssubscribe", "sunsubscribe", "wait"),
    ),
    "deploy": Account(
        "signalbox library load, and nothing else",
        LOADS,
        keys=("{}{{library:*", "{}layout"),
        channels=(),
    ),
    "reader": Account(
        "a program that only looks: get, find, counts, history, explain",
        (*READS, "fcall_ro", "ping"),
        channels=(),
        reads=True,
    ),
}
"""Name -> what it needs. The names are suggestions."""


def line(name: str, prefix: str = PREFIX, *, cluster: bool = False) -> str:
    """Return the command that a person types, with PASSWORD where the password belongs."""
    return " ".join(["ACL SETUSER", f"signalbox-{name}", *ACCOUNTS[name].rules(prefix, cluster=cluster), ">PASSWORD"])


def main() -> None:
    parser = argparse.ArgumentParser(description="Prints the ACL line of each account for Redis or Valkey.")
    parser.add_argument("names", nargs="*", metavar="ACCOUNT", help=f"{', '.join(ACCOUNTS)}; default: all")
    parser.add_argument("--prefix", default=PREFIX, help="SIGNALBOX_PREFIX (default: sb:)")
    parser.add_argument("--cluster", action="store_true", help="for the nodes of a cluster")
    asked = parser.parse_args()
    for name in asked.names or ACCOUNTS:
        print(line(name, asked.prefix, cluster=asked.cluster))  # noqa: T201


if __name__ == "__main__":
    main()
