"""``python manage.py audit verify``: verifies the hash chain of the audit."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from machines.audit.chain import read_heads, verify
from machines.conf import conf
from machines.management.verbs import add_verb, add_verbs


class Command(BaseCommand):
    help = "Verifies that no entry of the audit was edited, removed, inserted, swapped or cut off."

    def add_arguments(self, parser: ArgumentParser) -> None:
        verb = add_verb(self, add_verbs(parser), "verify", "check every entry, and the heads kept outside")
        verb.add_argument("--head", action="append", default=[], metavar="NUMBER:DIGEST", help="a head that was kept")
        verb.add_argument("--heads", type=Path, metavar="FILE", help="a file or log of heads; default: AUDIT_HEADS")

    def handle(self, *args: Any, **given: Any) -> None:
        lines = [text.replace(":", " ") for text in given["head"]]
        path = given["heads"] or conf.AUDIT_HEADS
        try:
            if path:
                lines += Path(path).read_text(encoding="utf-8").splitlines()
            report = verify(read_heads(lines))
        except (OSError, ValueError) as error:
            raise CommandError(f"heads cannot be read: {error}; each ends with a number and a digest") from None
        self.stdout.write(
            f"{report.checked} entries checked, {report.sealed} removed by retention, {report.waiting} not chained yet,"
            f" {report.compared} heads compared\nhead {report.number}:{report.digest}"
        )
        if report.findings:
            raise CommandError("\n".join(["the audit was changed:", *report.findings]))
