"""``manage.py screenshots [folder]``: takes a screenshot of every page, light, dark and phone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from dashboard.demo import screenshots
from dashboard.demo.processes import DemoFailed


class Command(BaseCommand):
    help = "Starts a demo of its own, visits every page, and writes pictures. Needs Playwright and a Chromium."
    requires_system_checks = []  # the server they look at is not there yet

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", nargs="?", default="screenshots", type=Path, help="default: screenshots")
        parser.add_argument("--only", nargs="+", choices=screenshots.NAMES, default=screenshots.NAMES, metavar="PAGE")
        parser.add_argument("--looks", nargs="+", choices=screenshots.LOOKS, default=list(screenshots.LOOKS))
        parser.add_argument("--whole", action="store_true", help="pages to their end, not only what a window shows")
        parser.add_argument("--after", type=float, default=60, help="seconds the demo runs first (default 60)")

    def handle(self, *args: Any, **options: Any) -> None:
        wish = screenshots.Wish(
            options["folder"], tuple(options["only"]), tuple(options["looks"]), options["whole"], options["after"]
        )
        try:
            count = screenshots.take(wish, say=self.stdout.write)
        except DemoFailed as error:
            raise CommandError(str(error)) from None
        self.stdout.write(f"{count} pictures in {wish.folder}")
